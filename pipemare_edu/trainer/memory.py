"""Bytes counted in a live run."""

from __future__ import annotations

from .stage import Stage
from .updates import StageOptimizer


def counted(stage: Stage, optimizer: StageOptimizer | None) -> dict[str, int]:
    """Bytes of one stage by kind, the most that was held at any time.

    weights      all parameters            gradients    one per trainable weight
    optimizer    its state tensors         stash        old weight versions (PipeDream)
    correction   T2's average              working      where the newest weights wait meanwhile
    activations  peak microbatches in flight times what one saves for its backward, as seen in
                 the first forward
    inputs       segment inputs that wait for a re-run (recompute)
    """
    trainable = sum(f.weights.nbytes for f in stage.flats)
    peaks = {"stash": 0, "correction": 0}
    for flat in stage.flats:
        if flat.policy.kind in peaks:
            peaks[flat.policy.kind] += flat.policy.peak
    return {
        "weights": sum(p.nbytes for layer in stage.layers for p in layer.parameters()),
        "gradients": trainable,
        "optimizer": optimizer.state_bytes() if optimizer else 0,
        **peaks,
        "working": trainable if any(peaks.values()) else 0,
        "activations": stage.peak.graphs * stage.saved.bytes,
        "inputs": stage.peak.inputs * stage.saved.input_bytes,
    }
