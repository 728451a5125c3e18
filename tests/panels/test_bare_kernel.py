"""Every plain call in a bare kernel: no front end answers, no widget is made, figures come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from every_panel import NAMES, plain
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingKernelClient]:
    env = os.environ | {
        "PLOTLY_RENDERER": "plotly_mimetype",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    manager, client = start_new_kernel(cwd=str(tmp_path_factory.mktemp("kernel")), env=env)
    try:
        executed(client, "from pipemare_edu import panels")
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def executed(client: BlockingKernelClient, code: str) -> list[dict[str, Any]]:
    """Execute; returns what the kernel published."""
    seen: list[dict[str, Any]] = []
    reply = client.execute_interactive(code, output_hook=seen.append, timeout=90)
    assert reply["content"]["status"] == "ok", "\n".join(reply["content"]["traceback"])
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_the_plain_call_needs_no_front_end(name: str, kernel: BlockingKernelClient) -> None:
    seen = executed(kernel, plain(name))
    shown = [m["content"]["data"] for m in seen if m["msg_type"] == "display_data"]
    assert shown and all(PLOTLY in data for data in shown)
    assert not [m for m in seen if m["msg_type"].startswith("comm")]
