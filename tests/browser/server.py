"""A Jupyter server of its own for a test, and a page of headless chromium that shows it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
QUIET = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


class Front(NamedTuple):
    """A front end: its module, its options, and the paths of a notebook and of a sign of life."""

    module: str
    options: list[str]
    page: str
    alive: str = "/api"


JUPYTER = [
    "--ip=127.0.0.1", "--ServerApp.port={port}", "--ServerApp.port_retries=0",
    "--IdentityProvider.token={token}", "--ServerApp.root_dir={folder}", "--allow-root",
    "--LabApp.extension_manager=readonly",
]  # fmt: skip
FRONTS = {
    "lab": Front("jupyterlab", [*JUPYTER, "--LabApp.expose_app_in_browser=True"], "/lab/tree/{}"),
    "notebook": Front(
        "notebook",
        [*JUPYTER, "--JupyterNotebookApp.expose_app_in_browser=True"],
        "/notebooks/{}",
    ),
    "voila": Front(
        "voila",
        # Notebook 7's own extension, which the same environment has, is not for Voila.
        [
            "{folder}",
            "--Voila.ip=127.0.0.1",
            "--port={port}",
            "--VoilaConfiguration.extension_denylist=@jupyter-notebook/lab-extension",
        ],
        "/voila/render/{}",
        "/",
    ),  # fmt: skip
}


class Server:
    """A running front end over one folder.  `url(name)` opens a notebook in it."""

    def __init__(
        self, folder: Path, home: Path, front: str = "lab", python: str | Path = sys.executable
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.front, self.base = FRONTS[front], f"http://127.0.0.1:{port}"
        self.token = secrets.token_hex(16)
        settings = home / "config" / "labconfig" / "page_config.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(QUIET))
        folders = {f"JUPYTER_{n}_DIR": str(home / n.lower()) for n in ("CONFIG", "DATA", "RUNTIME")}
        self.folder, self.log = folder, home / "log"
        given = {"folder": folder, "port": port, "token": self.token}
        options = [option.format(**given) for option in self.front.options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [python, "-m", self.front.module, "--no-browser", *options],
                stdout=log, stderr=log, env={**os.environ, **folders}, start_new_session=True,
            )  # fmt: skip

    def url(self, notebook: str) -> str:
        return f"{self.base}{self.front.page.format(notebook)}?token={self.token}&reset"

    def asked(self, path: str, method: str = "GET", seconds: float = 2.0) -> bytes:
        """What it answers to a request.  OSError without an answer in time."""
        asked = urllib.request.Request(f"{self.base}{path}?token={self.token}", method=method)
        with urllib.request.urlopen(asked, timeout=seconds) as answer:
            return answer.read()

    def end_kernels(self) -> None:
        """Kernels and the notebooks that are open in them."""
        for session in json.loads(self.asked("/api/sessions")):
            self.asked(f"/api/sessions/{session['id']}", "DELETE", seconds=15.0)

    def wait(self, seconds: float = 60.0) -> None:
        """Until it answers."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.asked(self.front.alive)
                return
            except OSError:
                time.sleep(0.1)
        name = self.front.module
        raise RuntimeError(f"{name} did not start:\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        """Stop it, and with it its kernels."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


@contextmanager
def serving(below: Path, **chosen: Any) -> Iterator[Server]:
    """A server over a new folder below `below`; see Server."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    folder, home = below / "notebooks", below / "jupyter"
    folder.mkdir()
    home.mkdir()
    server = Server(folder, home, **chosen)
    try:
        server.wait()
        yield server
    finally:
        server.close()


@contextmanager
def new_page() -> Iterator[Any]:
    """A page; errors that nothing on it catches end up in `page.problems`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1900})
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        yield page
        browser.close()
