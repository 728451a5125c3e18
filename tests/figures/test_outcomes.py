"""How runs ended and how soon: means, crosses, targets, and the same in words."""

from __future__ import annotations

from pipemare_edu.figures import Track, arrivals, describe, headline, scores
from pipemare_edu.figures.arrivals import arrival

ENDS = {"GPipe": [98.0, 99.0], "PipeMare naive": [None, 10.0], "PipeMare T1": []}


def test_bars_are_means_in_which_a_diverged_run_counts_0():
    bars, numbers, *dots = scores(ENDS, "accuracy").data
    assert list(bars.x) == ["GPipe", "PipeMare<br>naive"] and list(bars.y) == [98.5, 5.0]
    assert [list(d.y) for d in dots] == [[98.0, 99.0], [0.0, 10.0]]
    assert list(dots[1].marker.symbol) == ["x", "circle"]
    assert list(numbers.text) == ["98.5", "1 of 2 ✕<br>5"]


def test_no_run_covers_the_number_of_its_mean():
    figure = scores(ENDS, "accuracy")
    numbers, dots = figure.data[1], figure.data[2:]
    assert list(numbers.y) == [max(d.y) for d in dots]
    assert numbers.textposition == "top center"
    assert numbers.marker.size >= max(size for d in dots for size in d.marker.size) - 1
    assert "(✕ diverged)" in figure.layout.annotations[0].text
    assert "diverged" not in scores({"a": [1.0]}, "accuracy").layout.annotations[0].text


def test_the_message_names_the_best_and_the_worst():
    figure = scores(ENDS, "accuracy")
    assert headline(figure) == "Mean accuracy at the end: GPipe 98.5, PipeMare naive 5"
    assert "PipeMare naive 5 (1 of 2 diverged) and PipeMare T1 has no run" in describe(figure)
    assert headline(scores({}, "accuracy")) == "No run has ended yet"


def test_the_reported_panel_has_a_scale_of_its_own_and_the_same_colours():
    figure = scores(ENDS, "accuracy", {"PipeMare naive": 34.5, "GPipe": None}, "reported: BLEU")
    ours, theirs = figure.data[0], figure.data[-2]
    assert theirs.yaxis == "y2" and list(theirs.y) == [34.5]
    assert theirs.marker.color[0] == ours.marker.color[1]
    assert [a.text for a in figure.layout.annotations][1] == "reported: BLEU"
    assert "Beside it, reported: BLEU: PipeMare naive 34.5." in describe(figure)


def test_a_long_heading_takes_the_lines_and_the_height_that_it_needs():
    def shown(about):
        figure = scores(ENDS, "accuracy", {"GPipe": 34.5}, about)
        return figure.layout, [a.text for a in figure.layout.annotations]

    short, _ = shown("reported BLEU")
    long, (ours, theirs) = shown("reported BLEU, IWSLT14 De-En")
    assert ours == "measured accuracy (✕ diverged)"
    assert theirs == "reported BLEU,<br>IWSLT14 De-En"
    more = long.height - short.height
    assert more > 0 and long.margin.t - short.margin.t == more


def test_there_is_room_above_the_best_for_a_count_of_crosses():
    def room(ends):
        return scores(ends, "accuracy").layout.yaxis.range[1]

    assert room({"a": [80.0]}) < room({"a": [80.0, None]})
    assert room({"a": [None]}) == room({}) == 1


RUNS = {
    "GPipe": [Track([10, 20, 40], [50, 96, 99]), Track([10, 20, 40], [50, 60, 99])],
    "PipeMare": [Track([1, 2, 4], [50, 60, 96]), Track([1, 2, 4], [50, 60, 97])],
    "naive": [Track([1, 2], [99, 1], diverged=True)],
}


def test_a_line_a_run_and_a_cross_where_it_diverged():
    figure = arrivals(RUNS, "accuracy", "steps of GPipe", 95.0)
    assert [t.legendgroup for t in figure.data if t.mode != "markers"] == [
        "GPipe", "GPipe", "PipeMare", "PipeMare", "naive",
    ]  # fmt: skip
    assert [t.showlegend for t in figure.data] == [True, False, True, False, True, False]
    assert [t.name for t in figure.data if t.showlegend] == [
        "GPipe: 2 of 2", "PipeMare: 2 of 2", "naive: 0 of 1",
    ]  # fmt: skip
    assert figure.layout.legend.title.text == "Runs that reach 95:"
    assert figure.data[-1].marker.symbol == "x" and list(figure.data[-1].x) == [2]
    assert figure.layout.shapes[0].y0 == 95.0 and figure.layout.xaxis.type == "log"


def test_who_arrives_first():
    figure = arrivals(RUNS, "accuracy", "steps of GPipe", 95.0)
    title = "Of those that reach 95 in every run, PipeMare is the soonest on average"
    assert headline(figure) == title
    assert "GPipe 30 (2 of 2 runs) and PipeMare 4 (2 of 2 runs)" in describe(figure)
    assert arrival(RUNS["naive"][0], 95.0) is None, "it diverged"


def test_a_method_whose_runs_do_not_all_arrive_is_not_called_the_soonest():
    lucky = {"lucky": [Track([1, 2], [50, 99]), Track([1, 2], [50, 60])], "sure": RUNS["GPipe"]}
    figure = arrivals(lucky, "accuracy", "steps of GPipe", 95.0)
    assert headline(figure) == "sure alone reaches 95 in every run"
    assert [t.name for t in figure.data if t.showlegend] == ["lucky: 1 of 2", "sure: 2 of 2"]
    assert "lucky 2 (1 of 2 runs)" in describe(figure)


def test_the_label_of_the_target_is_beside_the_plot():
    [label] = arrivals(RUNS, "accuracy", "steps of GPipe", 95.0).layout.annotations
    assert label.xref == "paper" and label.x > 1 and label.xanchor == "left"
    assert not arrivals(RUNS, "accuracy", "steps").layout.annotations


def test_nobody_arrives_and_no_target_is_known():
    assert "No method reaches" in headline(arrivals(RUNS, "accuracy", "steps", 100.0))
    assert "No target is known yet" in describe(arrivals({}, "accuracy", "steps"))
