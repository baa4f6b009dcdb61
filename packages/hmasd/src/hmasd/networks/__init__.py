"""Networks: building blocks, the skill coordinator, the skill discoverer and the discriminators."""
