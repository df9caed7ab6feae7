# SPDX-License-Identifier: MIT
"""A small DLRM in PyTorch that learns which packages go together, from the machine's own data.

``python -m embeng.demo`` runs it. A package and the packages that it depends on are a basket. One
dependency of each basket is held out, and the model ranks it among others that were drawn as often
as they are used. :func:`main` is the program.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo.

    Parameters
    ----------
    arguments : list of str, optional
        As on the command line; those of the program by default.

    Returns
    -------
    int
        Exit status: 0 learned, 1 no better than popularity, 2 something that is needed is missing.
    """
    from .program import run

    return run(arguments)
