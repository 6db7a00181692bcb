"""The state machine of the engine, its messages and its effects."""
