"""Count the passes of batches through the trunk in an epoch of each training schedule."""


def trunk_passes(variant: str, batches: float, classes: float) -> tuple[float, float]:
    """Return how many of M batches go forward, and how many gradients of batches come back, with C classes.

    variant: `printed` (Algorithm 3), `sequential` or `joint` (both with all references).
    """
    pairs, anchors = batches * (batches - 1) / 2, batches - 1
    if variant == "printed":  # For each pair the reference goes forward, and gradients come back to both.
        return classes * (pairs + anchors), classes * 2 * pairs
    loops = classes if variant == "sequential" else 1
    return loops * (pairs + anchors), loops * (pairs + anchors)
