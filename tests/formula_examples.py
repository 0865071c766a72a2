r"""Texts with their formulas, on which the window and the phones' page must agree."""

FORMULAS: tuple[tuple[str, list[str]], ...] = (
    # A letter or a digit before a $ makes it an amount of money or a part of a name.
    ("US$5 and CA$ prices", []),
    ("a$b$ c", []),
    ("5$x$", []),
    ("é$x$ and x²$y$", []),
    ("from US$5 to $6", []),
    ("US$5, where $x$ is", ["$x$"]),
    ("a$b and $c$", ["$c$"]),
    ("**a**$x$", ["$x$"]),
    ("`a`$x$", ["$x$"]),
    ("**US$5 and CA$ prices**", []),
    ("_a_ $x$", ["$x$"]),
    ("($x$), $y$.", ["$x$", "$y$"]),
    ("line\n$x$ next", ["$x$"]),
    # What stands behind it decides as well.
    ("costs $5 and $6", []),
    ("$5-$10", []),
    ("US$5/NZ$6", []),
    ("($100 or $120)", []),
    ("$HOME and $PATH, $A/$B, ${A}/${B}", []),
    ("the $n$th of $x$-axis", ["$n$", "$x$"]),
    ("a $ b $ c", []),
    (r"\$x\$", []),
    ("`$x$`", []),
    # The other openings may follow a letter.
    (r"a\(x\) b\[y\]", [r"\(x\)", r"\[y\]"]),
    ("a$$x$$ b", ["$$x$$"]),
)
