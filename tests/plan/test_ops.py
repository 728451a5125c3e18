import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipemare_edu as pm
from pipemare_edu.plan.ops import Op, Operations, receiver, sender

operations = st.lists(
    st.builds(Op, st.sampled_from("FBUER"), st.integers(0, 10_000)), max_size=30
).map(Operations)


@given(operations)
def test_text_form_parses_back(ops):
    assert pm.parse(str(ops)) == ops


def test_the_text_form_is_the_documented_one():
    text = "F0 F1 B0 U0 F2 R1 B1 U1 E1"
    assert str(pm.parse(text)) == text
    assert pm.parse("  F0\n B0 ") == (Op("F", 0), Op("B", 0))
    assert pm.parse("") == ()


@pytest.mark.parametrize("word", ["X0", "F", "F-1", "f0", "F1.5", "0F", "F0,"])
def test_a_word_that_is_no_operation_is_named_with_its_place(word):
    with pytest.raises(ValueError, match="operation 2 is") as caught:
        pm.parse(f"F0 {word} B0")
    assert repr(word) in str(caught.value)


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_every_message_has_one_sender_and_one_receiver(stages):
    for kind in "FBER":
        op = Op(kind, 0)
        sent = {(i, receiver(op, i, stages)) for i in range(stages)}
        awaited = {(sender(op, i, stages), i) for i in range(stages)}
        assert {x for x in sent if None not in x} == {x for x in awaited if None not in x}
    assert all(sender(Op("U", 0), i, stages) is None for i in range(stages))


def test_the_step_of_an_operation():
    assert [Op(kind, 7).step(3) for kind in "FBRUE"] == [2, 2, 2, 7, 7]
