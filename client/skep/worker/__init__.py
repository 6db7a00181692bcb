"""The worker process: the only code that uses torch, hivemind and the GPU, so their crashes do not end the engine."""
