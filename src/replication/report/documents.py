"""Generated blocks of documents."""

from clai.errors import InputError


def replace_block(text: str, name: str, block: str) -> str:
    """Return a document with `block` between the lines `<!-- name:begin -->` and `<!-- name:end -->`.

    Raises:
        InputError: the two lines are not there, in order.
    """
    first, last = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    begin, end = text.find(first), text.find(last)
    if not 0 <= begin < end:
        raise InputError(
            f"found no block {name} in the document, expected the lines {first} and {last}, in this order; add them"
        )
    return f"{text[: begin + len(first)]}\n{block}\n{text[end:]}"
