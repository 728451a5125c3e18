"""A JupyterLab of its own for these tests, and a page of headless chromium that shows it."""

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
from pathlib import Path

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


class Lab:
    """A running JupyterLab over one folder.  `url(name)` opens a notebook in it."""

    def __init__(self, folder: Path, home: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.token, self.base = secrets.token_hex(16), f"http://127.0.0.1:{port}"
        settings = home / "config" / "labconfig" / "page_config.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(QUIET))
        folders = {f"JUPYTER_{n}_DIR": str(home / n.lower()) for n in ("CONFIG", "DATA", "RUNTIME")}
        self.folder, self.log = folder, home / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                    "--ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
                    f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}",
                    "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
                ],
                stdout=log, stderr=log, env={**os.environ, **folders}, start_new_session=True,
            )  # fmt: skip

    def url(self, notebook: str) -> str:
        return f"{self.base}/lab/tree/{notebook}?token={self.token}&reset"

    def wait(self, seconds: float = 60.0) -> None:
        """Until it answers."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.base}/api?token={self.token}", timeout=2).read()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        """Stop it, and with it its kernels."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    folder, home = tmp_path / "notebooks", tmp_path / "jupyter"
    folder.mkdir()
    home.mkdir()
    lab = Lab(folder, home)
    try:
        lab.wait()
        yield lab
    finally:
        lab.close()


@pytest.fixture
def page(lab: Lab):  # noqa: ANN201
    """A page; errors on its console end up in `page.problems`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1900})
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        yield page
        browser.close()
