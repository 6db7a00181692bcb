"""The state machine of a stay in a project, and the messages it takes and sends."""
