# Installs skep inside WSL2, the only way it runs on Windows: hivemind needs fork and Unix sockets.
# Without -Install nothing is changed: it prints what is present and what is missing, with the command that installs it.
# Not yet run on Windows.
#
#   .\install.ps1
#   .\install.ps1 -Install -Package .\skep_0.1.0_amd64.deb [-Distribution Debian]
[CmdletBinding()]
param(
    [switch] $Install,
    [string] $Package,
    [string] $Distribution
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'
$env:WSL_UTF8 = '1'  # otherwise wsl.exe prints UTF-16

$missing = 0
function Say([bool] $Good, [string] $What, [string] $Mend = '') {
    if ($Good) { Write-Output "ok       $What"; return }
    $script:missing++
    Write-Output "missing  $What"
    if ($Mend) { Write-Output "         $Mend" }
}

# Runs a command in the distribution as root where asked; the exit code is in $LASTEXITCODE.
function Inside([string[]] $Command, [switch] $AsRoot) {
    $options = @('--distribution', $Distribution)
    if ($AsRoot) { $options += @('--user', 'root') }
    & wsl.exe @options --exec @Command
}

$build = [Environment]::OSVersion.Version.Build
Say ($build -ge 19044) "Windows 10 21H2 or newer (this is build $build)" 'Update Windows.'
Say ([Environment]::Is64BitOperatingSystem) 'a 64-bit Windows'

$wsl = Get-Command wsl.exe -ErrorAction SilentlyContinue
Say ($null -ne $wsl) 'WSL' 'As administrator: wsl --install'
if ($null -eq $wsl) { exit 1 }

$listed = @(& wsl.exe --list --verbose 2>$null | Select-Object -Skip 1 | ForEach-Object {
    $words = ($_ -replace '^\s*\*', '').Trim() -split '\s+'
    if ($words.Count -ge 3) { [pscustomobject]@{ Name = $words[0]; Version = $words[-1] } }
})
if (-not $Distribution) {
    $fitting = @($listed | Where-Object { $_.Version -eq '2' -and $_.Name -match '^(Debian|Ubuntu)' })
    if ($fitting.Count -gt 0) { $Distribution = $fitting[0].Name }
}
$chosen = @($listed | Where-Object { $_.Name -eq $Distribution })
Say ($chosen.Count -eq 1) 'a Debian or Ubuntu in WSL' 'wsl --install --distribution Debian'
if ($chosen.Count -ne 1) { exit 1 }
Say ($chosen[0].Version -eq '2') "$Distribution runs under WSL 2" "wsl --set-version $Distribution 2"

Inside @('sh', '-c', 'dpkg --compare-versions "$(dpkg-query -W -f ''${Version}'' libc6)" ge 2.36') | Out-Null
Say ($LASTEXITCODE -eq 0) 'glibc 2.36 or newer in it' 'Use Debian 12, Ubuntu 24.04 or newer.'
Inside @('test', '-d', '/mnt/wslg') | Out-Null
Say ($LASTEXITCODE -eq 0) 'WSLg, which shows the window' 'wsl --update   (without it the terminal''s skep works)'
Inside @('test', '-e', '/usr/lib/wsl/lib/libcuda.so.1') | Out-Null
if ($LASTEXITCODE -ne 0) { Write-Output 'note     No NVIDIA driver is seen inside; skep would train on the processor.' }

if (-not $Install) { exit [int]($missing -gt 0) }
if ($missing -gt 0) { Write-Output 'Nothing was installed.'; exit 1 }
if (-not $Package -or -not (Test-Path -LiteralPath $Package -PathType Leaf)) {
    Write-Output 'Name the package: -Package .\skep_VERSION_amd64.deb'
    exit 2
}
$path = (Inside @('wslpath', '-a', (Resolve-Path -LiteralPath $Package).Path.Replace('\', '/')) | Out-String).Trim()
# apt reads it as the user _apt, which has no access to a Windows profile
Inside @('cp', $path, '/var/cache/apt/archives/skep.deb') -AsRoot
Inside @('apt-get', 'update') -AsRoot
Inside @('apt-get', 'install', '--yes', '/var/cache/apt/archives/skep.deb') -AsRoot
if ($LASTEXITCODE -ne 0) { Write-Output 'apt-get says above why it was not installed.'; exit 1 }
Inside @('skep', 'self-test')
exit $LASTEXITCODE
