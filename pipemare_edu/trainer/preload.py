"""What the server that workers are forked from has loaded, so that a worker starts in
milliseconds: the first torch.optim optimizer of a process imports dynamo, a second's worth."""

import torch._dynamo  # noqa: F401

from . import worker  # noqa: F401
