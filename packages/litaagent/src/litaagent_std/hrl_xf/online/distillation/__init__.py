"""A trained policy into a more compact one that decides faster."""
