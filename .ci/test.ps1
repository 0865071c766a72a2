# Runs the checks and the quick tests on Windows: powershell -File .ci\test.ps1
# NOT VERIFIED: nobody has run this yet. Needs the Visual Studio Build Tools and Python 3.11 to 3.13; no secrets.
$ErrorActionPreference = "Stop"
Set-Location (Join-Path $PSScriptRoot "..")
py -m scripts.setup --dev
if ($LASTEXITCODE) { exit $LASTEXITCODE }
$quick = "not long and not alone and not real and not cards and not phone and not installers"
& .venv\Scripts\python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m $quick
exit $LASTEXITCODE
