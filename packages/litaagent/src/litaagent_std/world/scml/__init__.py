"""The same worlds through scml's own classes, and the verifier that compares both engines."""
