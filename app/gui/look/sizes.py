"""Sizes in pixels at 100 % text size. Pixel sizes appear only here and in the style sheet."""

# The steps of the 4 px grid
XS, S, M, L, XL, XXL = 4, 8, 12, 16, 24, 32

# Text
CAPTION, BODY, SECTION, TITLE, FIGURE, CODE_SIZE = 12, 14, 16, 20, 28, 13

# Widths of the window's parts
CHAT_WIDTH = 760
SIDEBAR_WIDTH = 200

# Surfaces and controls
CARD_RADIUS, CONTROL_RADIUS, CONTROL_HEIGHT = 12, 8, 36
CONTROL_INNER, ITEM = 34, 28  # heights without borders, as style sheets need them
CODE_INNER = 46  # the field for a pairing code
RADIO_RING, HANDLE = 5, 20

# Independent of the text size: borders, the focus ring, scroll bars, and Fusion's margin beside the text of a cell
LINE, RING, SCROLL_BAR = (1, 2, 12)
CELL_MARGIN = 3
