"""What the server that workers are forked from has loaded, so that a worker starts in
milliseconds: the first torch.optim optimizer of a process imports dynamo, a second's worth."""

import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trainer, also while this loads

import torch._dynamo  # noqa: E402, F401

from . import worker  # noqa: E402, F401
