# Builds the engine packs for Windows:
#   powershell -File .ci\engines\windows.ps1 FOLDER [BACKEND ...]
# NOT VERIFIED: nobody has run this yet. Needs the Visual Studio Build Tools ("Desktop development with C++"), the
# Vulkan SDK 1.4.309 for vulkan, the CUDA Toolkit 13.0 or 12.8 for cuda13 and cuda12; no secrets.
param([Parameter(Mandatory)][string]$Folder, [string[]]$Backends = @("vulkan", "cuda13"))
$ErrorActionPreference = "Stop"
Set-Location (Join-Path $PSScriptRoot "..\..")

$env:SOURCE_DATE_EPOCH = git log -1 --format=%ct
py -m scripts.setup
if ($LASTEXITCODE) { exit $LASTEXITCODE }
New-Item -ItemType Directory -Force $Folder | Out-Null
foreach ($backend in $Backends) {
    & .venv\Scripts\python -m scripts.engine_pack $backend --architectures all
    if ($LASTEXITCODE) { exit $LASTEXITCODE }
    Copy-Item "build\engines\$backend-*.tar.gz" $Folder
}
Get-ChildItem $Folder -Filter *.tar.gz | Get-FileHash -Algorithm SHA256 |
    ForEach-Object { "$($_.Hash.ToLower())  $(Split-Path $_.Path -Leaf)" } |
    Tee-Object -FilePath (Join-Path $Folder "SHA256SUMS")
