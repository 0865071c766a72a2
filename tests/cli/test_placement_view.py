"""What is said of a forecast."""

from __future__ import annotations

import pytest

from app.cli.placement_view import ROUGH, forecast_line
from app.cli.shapes import Bottleneck, Forecast


@pytest.mark.parametrize(("tok_s", "rough"), [(9.3, False), (60.0, False), (330.0, True)])
def test_a_forecast_of_a_tiny_model_is_called_rough(tok_s: float, rough: bool) -> None:
    known = Forecast(1.2, tok_s, tok_s, 10.0, Bottleneck("compute", "den"))
    told = forecast_line(known, 1)
    assert told.startswith(f"Forecast: first word after 1.20 s, then {tok_s:.1f} tok/s.")
    assert told.endswith(ROUGH) is rough
