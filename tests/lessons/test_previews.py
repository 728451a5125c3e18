"""Pictures beside the figures of a notebook: for places that run no code, in the way of nobody."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from pipemare_edu.lessons import build, previews, source
from pipemare_edu.lessons.lint import MAX_BYTES

SOURCE = """\
# %% [markdown]
# # 78 · Made up
# **5 minutes**; {{machine time}}.

# %%
from pipemare_edu.figures.style import figure

bars = [{"type": "bar", "x": ["a", "b"], "y": [2, 1]}]
figure(bars, "Two bars", "The first is twice as high as the second.", height=300)
"""
FIGURE = {"data": [], "layout": {"title": {"text": "Nothing"}}}


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The student's notebook of a lesson with one figure, built; it has no pictures."""
    folder = tmp_path_factory.mktemp("notebooks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "SOURCES", folder)
        patch.setattr(build, "NOTEBOOKS", folder)
        (folder / "78_made_up.py").write_text(SOURCE)
        build.build("78_made_up")
        yield folder / "78_made_up.ipynb"


@pytest.fixture
def pictured(lesson: Path) -> Iterator[Path]:
    """The same with pictures, where there is a browser to draw them."""
    bare = {path: path.read_bytes() for path in lesson.parent.rglob("*.ipynb")}
    previews.main([])
    if lesson.read_bytes() == bare[lesson]:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    yield lesson
    for path, text in bare.items():
        path.write_bytes(text)


def png(width: int = 60, height: int = 40) -> bytes:
    """Opaque on the left in many colours, transparent on the right."""
    picture = Image.new("RGBA", (width, height))
    for x in range(width // 2):
        for y in range(height):
            picture.putpixel((x, y), (8 * x, 6 * y, 128, 255))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_a_picture_in_few_colours_is_smaller_and_as_transparent() -> None:
    few = Image.open(io.BytesIO(previews.small(png())))
    assert few.mode == "P" and few.size == (60, 40)
    assert len(few.convert("RGBA").getcolors()) <= previews.COLOURS
    assert [few.convert("RGBA").getpixel((x, 20))[3] for x in (5, 55)] == [255, 0]


def test_only_figures_without_a_picture_are_given_one() -> None:
    bare, other = {build.PLOTLY: FIGURE, "text/plain": "Words."}, {"text/plain": "6"}
    old = {**bare, previews.PNG: "b2xk"}
    outputs = [new_output("display_data", data=dict(data)) for data in (bare, old, other)]
    outputs.append(new_output("stream", text="said"))
    book = new_notebook(cells=[new_code_cell("x", outputs=outputs)])
    assert previews.add(book, lambda figure: png()) == 1
    first, second, third, fourth = book.cells[0].outputs
    assert set(first.data) == {*bare, previews.PNG}
    assert first.metadata == {previews.PNG: {"width": previews.WIDTH, "height": previews.HEIGHT}}
    assert (second.data, third.data, fourth.text) == (old, other, "said")
    assert previews.add(book, lambda figure: png()) == 0
    nbformat.validate(book)


def test_every_figure_is_drawn_and_no_notebook_drifts(pictured: Path) -> None:
    for path in (pictured, build.path_of("78_made_up", solved=True)):
        (output,) = nbformat.read(path, as_version=4).cells[2].outputs
        assert set(output.data) == {build.PLOTLY, previews.PNG, "text/plain"}
        picture = Image.open(io.BytesIO(base64.b64decode(output.data[previews.PNG])))
        assert picture.size == (previews.WIDTH, 300)  # in JupyterLab it stands in its own size
        colours = {colour for _, colour in picture.convert("RGBA").getcolors()}
        assert any(blue > 120 > red for red, _, blue, _ in colours), "no bar has been drawn"
        assert path.stat().st_size < MAX_BYTES
    assert build.drift("78_made_up") == []
    before = pictured.read_bytes()
    previews.main([])
    assert pictured.read_bytes() == before


def test_where_no_code_runs_the_picture_is_what_shows(pictured: Path) -> None:
    """Repository pages choose as nbconvert does by itself: text/html, then pictures, then text."""
    page, _ = HTMLExporter(template_name="basic").from_filename(str(pictured))
    shown = BeautifulSoup(page, "html.parser").select_one(".output_area")
    assert shown.img["src"].startswith("data:image/png") and shown.img["width"] == "720"
    assert "The first is twice as high" not in shown.get_text()


def test_without_a_browser_nothing_changes_and_nothing_fails(
    lesson: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(previews, "CHROMES", ())
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    before = lesson.read_bytes()
    assert previews.main([]) == 0
    assert "No Chrome" in capsys.readouterr().err
    assert lesson.read_bytes() == before


def test_an_unknown_lesson_is_refused(lesson: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        previews.main(["79_not_made"])
    assert "there is no lesson '79_not_made'" in capsys.readouterr().err


def test_strict_nbval_passes_with_and_without_pictures(pictured: Path, tmp_path: Path) -> None:
    book = nbformat.read(pictured, as_version=4)
    nbformat.write(book, tmp_path / "with.ipynb")
    del book.cells[2].outputs[0].data[previews.PNG]
    nbformat.write(book, tmp_path / "without.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    command += ["-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", "/dev/null"]
    env = os.environ | {"PLOTLY_RENDERER": "plotly_mimetype", "PIPEMARE_EDU_PROFILE": "ci"}
    done = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, env=env, timeout=200
    )
    cells = sum(cell.cell_type == "code" for cell in book.cells)
    assert re.search(rf"\b{2 * cells} passed", done.stdout), done.stdout[-3000:]
