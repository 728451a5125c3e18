"""What the server that workers are forked from has loaded, so that a worker starts in
milliseconds: the first torch.optim optimizer of a process imports dynamo, a second's worth."""

import atexit
import os
import shutil

import torch._dynamo  # noqa: F401

from .members import FOLDER

# The server ends once the trainer's process and all workers have, whatever ended them.
atexit.register(shutil.rmtree, os.environ.get(FOLDER, ""), ignore_errors=True)
