"""The report says what was run, what was measured and what is the paper's; in three files."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import fields

import pipemare_edu as pm
from pipemare_edu.reproduce.presets import METHODS, PRESETS
from pipemare_edu.reproduce.render import Heading, Table, as_csv, html_page, markdown, shown
from pipemare_edu.reproduce.report import contents, sections, write
from pipemare_edu.reproduce.summary import Row


def texts(study) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in write(study, 0.95)}


def cells(markdown: str, heading: str) -> list[list[str]]:
    """The table whose head begins with these columns."""
    lines = markdown.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_markdown_has_every_method_in_order_and_says_what_was_run(study, copy):
    text = texts(study(copy))["report.md"]
    head, _, *body = cells(text, "| method | runs")
    assert head == [
        "method", "runs", "explained, measured", "diverged", "staleness", "memory, measured",
        "utilization over GPipe's, clock", "quality, reported", "memory, reported",
    ]  # fmt: skip
    assert [row[0] for row in body] == list(METHODS.values())
    assert [row[1] for row in body] == ["2"] * 6
    assert [row[6] for row in body] == ["1.00x", *["12.00x"] * 5]
    assert body[1][5] > body[0][5] == "1.00x" and body[0][8] == "-"
    assert re.fullmatch(r"[\d.]+x by its formula here", body[1][8])
    head, _, *body = cells(text, "| method | reach it")
    assert head[-4:] == ["step ratio", "T3's bill", "utilization", "time to target"]
    assert [row[0] for row in body] == list(METHODS.values())
    for fact in (
        pm.__version__,
        "12 of 12 runs",
        "seeds 10, 11",
        "P = 12",
        "8 steps (the task's own are 800)",
        "Target:",
    ):
        assert fact in text
    assert re.search(r"\d{4}-\d\d-\d\d; pipemare_edu .*, torch \d.*, python 3", text)
    assert str(copy) not in text and "The paper has no such network" in text


def test_a_diverged_run_counts_0_and_is_counted(study, copy):
    one = study(copy)
    for asked in one.asked:
        if asked.work.name == "pipemare-naive":
            record = one.store.get(asked.config)
            one.store.put(asked.config, record | {"status": "diverged"})
    row = next(r for r in cells(texts(one)["report.md"], "| method | runs") if "naive" in r[0])
    assert row[2:4] == ["0.0 ± 0.0", "2 of 2"]


def test_csv_has_a_row_for_each_method_and_every_number(study, copy):
    rows = list(csv.DictReader(io.StringIO(texts(study(copy))["report.csv"])))
    assert list(rows[0]) == [f.name for f in fields(Row)]
    assert [r["method"] for r in rows] == list(METHODS)
    assert {r["utilization"] for r in rows[1:]} == {"12.0"}
    assert all(float(r["mean"]) >= 0 and r["reported_setting"] == "" for r in rows)


def test_html_needs_nothing_else_and_has_both_figures_in_words(study, copy):
    page = texts(study(copy))["report.html"]
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="', page)
    assert page.count("Plotly.newPlot(") == 2 + page.split("<body>")[0].count("Plotly.newPlot(")
    assert page.count("<figcaption>") == 2 and "Mean explained after the last step" in page
    assert "T3&#x27;s bill" in page and "<h2>regression: " in page


def test_the_papers_row_stands_beside_ours_and_says_reported(study, tmp_path):
    text = texts(study(tmp_path, task="shapes", steps=None))["report.md"]
    body = {row[0]: row for row in cells(text, "| method | runs")[2:]}
    assert body["PipeDream"][-2:] == ["94.8 (about, as we recall the paper)", "2.7x"]
    assert body["PipeMare T1+T2"][-2:] == ["95.0", "1.33x"]
    assert body["PipeMare T1"][-2:] == ["-", "1.0x"]
    assert "The reported columns are the paper's row CIFAR10, ResNet-50, 107 stages." in text
    assert "It reports a utilization of 14.3x, which is the model" in text
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Beside it, reported accuracy, CIFAR10: GPipe 95, PipeDream 94.8" in page


def test_a_report_of_a_study_without_any_run(study, tmp_path):
    text = texts(study(tmp_path))["report.md"]
    assert "0 of 12 runs" in text and "not known without a run of GPipe" in text
    assert cells(text, "| method | runs")[2][1:5] == ["0", "-", "0 of 0", "-"]


def test_a_paper_preset_says_where_its_settings_are_from(study, tmp_path):
    one = study(tmp_path)
    [part] = sections(one, 0.95)

    def table():
        blocks = contents(one, [part], 0.95)
        return next((b for b in blocks if isinstance(b, Table) and b.head[-1] == "from"), None)

    assert table() is None
    one.preset = PRESETS["paper-cifar10"]
    named = {row[0]: row[1:] for row in table().rows}
    assert named["stages"] == ("12", "as we recall the paper")
    assert named["steps"][0] == "8" and named["t3"][1].startswith("reported")


def test_tables_of_numbers_that_are_not_known(study, tmp_path):
    [part] = sections(study(tmp_path), 0.95)
    for table in (part.outcome(), part.to_target()):
        assert {len(row) for row in table.rows} == {len(table.head)}
        assert len(table.rows) == len(METHODS)


def test_blocks_are_markdown_and_html():
    blocks = [Heading(2, "a & b"), "words", ["one", "two"], Table(("a", "b"), (("x & y", "1"),))]
    assert markdown(blocks) == (
        "## a & b\n\nwords\n\n* one\n* two\n\n| a | b |\n| --- | ---: |\n| x & y | 1 |\n"
    )
    page = html_page(blocks, "<title>")
    assert "<h2>a &amp; b</h2>\n<p>words</p>\n<ul><li>one</li><li>two</li></ul>" in page
    assert '<th scope="row">x &amp; y</th><td>1</td>' in page and "<title>&lt;title&gt;" in page


def test_numbers_as_text():
    assert as_csv([]).split(",")[:3] == ["task", "network", "method"]
    assert (shown(None), shown(1.239), shown(7, "d"), shown(2.0, after="x")) == (
        "-", "1.24", "7", "2.00x",
    )  # fmt: skip
