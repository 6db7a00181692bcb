"""The child process: the only code that touches torch, hivemind and the GPU. It may crash; the engine may not."""
