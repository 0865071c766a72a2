# Tries a setup program on a real Windows, for the user who runs this:
#   powershell -File .ci\installers\windows.ps1 FOLDER_WITH_THE_SETUP_PROGRAM
# It installs, asks SmolLM2 a question, updates, and removes all again, data too. No secrets.
# NOT VERIFIED: nobody has run this yet.
param([Parameter(Mandatory)][string]$Folder)
$ErrorActionPreference = "Stop"
$setup = (Get-Item (Join-Path $Folder "poolhouse-*-setup.exe")).FullName
$installed = Join-Path $env:LOCALAPPDATA "Programs\Poolhouse"
$data = Join-Path $env:LOCALAPPDATA "poolhouse"
$said = Join-Path $env:TEMP "poolhouse-setup.txt"
if ((Test-Path $installed) -or (Test-Path $data)) { throw "Poolhouse is on this computer already, so nothing was tried." }

function Start-ToEnd([string]$Program, [string[]]$Words) {
    $done = Start-Process $Program $Words -Wait -PassThru
    if ($done.ExitCode) { throw "$Program ended with $($done.ExitCode): $(Get-Content $said -ErrorAction Ignore)" }
}
function Invoke-Poolhouse {
    & "$installed\bin\poolhouse.exe" @args
    if ($LASTEXITCODE) { throw "poolhouse $args ended with $LASTEXITCODE" }
}

Start-ToEnd $setup "/S"
Invoke-Poolhouse --version
$node = Start-Process "$installed\bin\poolhouse.exe" "node" -PassThru -WindowStyle Hidden
$deadline = (Get-Date).AddMinutes(2)
do {
    Start-Sleep 1
    & "$installed\bin\poolhouse.exe" status | Out-Null
} while ($LASTEXITCODE -and (Get-Date) -lt $deadline)
Invoke-Poolhouse doctor
Invoke-Poolhouse load SmolLM2-135M-Instruct.Q4_1
Invoke-Poolhouse ask "Explain how a rainbow forms." -t 0 -n 20
Stop-Process $node # which ends Python too
$node.WaitForExit()
Start-Sleep 5
Start-ToEnd $setup "/S"
Invoke-Poolhouse --version
Start-ToEnd "$installed\uninstall.exe" @("/S", "/DATA", "_?=$installed") # waits, so it cannot remove itself
foreach ($place in $installed, $data) {
    $left = Get-ChildItem $place -Recurse -File -ErrorAction Ignore | Where-Object Name -ne "uninstall.exe"
    if ($left) { throw "Files stayed: $($left.FullName)" }
}
