; The setup program for Windows: per user, without an administrator. setup_program.py gives it the words in capitals and
; the list of files. It changes no setting of the network: the last page but one shows a command for the firewall.

Unicode true
!include MUI2.nsh
!include LogicLib.nsh
!include nsDialogs.nsh
!include FileFunc.nsh
!include WordFunc.nsh
!include WinVer.nsh
!include WinMessages.nsh

!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\Poolhouse"
!define RUN "Software\Microsoft\Windows\CurrentVersion\Run"
!define APPROVED "Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
!define LINK "$SMPROGRAMS\Poolhouse.lnk"
!define SAID "$TEMP\poolhouse-setup.txt"

Name "Poolhouse"
BrandingText "Poolhouse ${VERSION}"
OutFile "${RESULT}"
InstallDir "$LOCALAPPDATA\Programs\Poolhouse"
RequestExecutionLevel user
ManifestDPIAware true
ManifestSupportedOS Win10
SetCompressor /SOLID lzma
SetCompressorDictSize 64
AllowSkipFiles off
ShowInstDetails nevershow
ShowUninstDetails nevershow
VIProductVersion "${FOUR}"
VIFileVersion "${FOUR}"
VIAddVersionKey /LANG=0 "ProductName" "Poolhouse"
VIAddVersionKey /LANG=0 "ProductVersion" "${VERSION}"
VIAddVersionKey /LANG=0 "FileVersion" "${VERSION}"
VIAddVersionKey /LANG=0 "FileDescription" "Poolhouse Setup"
VIAddVersionKey /LANG=0 "CompanyName" "The Poolhouse authors"
VIAddVersionKey /LANG=0 "LegalCopyright" "The Poolhouse authors. Apache License 2.0."

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_NOAUTOCLOSE
!define MUI_FINISHPAGE_RUN "$INSTDIR\Poolhouse.exe"
!define MUI_FINISHPAGE_RUN_TEXT "$(OPEN)"
!define MUI_FINISHPAGE_TEXT "$(FINISHED)"

Var Dialog
Var AutostartBox
Var PathBox
Var DataBox
Var Autostart
Var OnPath
Var RemoveData
Var Command

Page custom OptionsPage OptionsLeave
!insertmacro MUI_PAGE_INSTFILES
Page custom FirewallPage
!insertmacro MUI_PAGE_FINISH
UninstPage custom un.DataPage un.DataLeave
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"
!include "${TEXTS}"
!include "${REMOVAL}"

; A silent run has nobody to ask, so what it refuses to do is said in a file.
!macro Stopping UN
Function ${UN}Refuse
  Pop $R9
  ${If} ${Silent}
    FileOpen $R8 "${SAID}" w
    FileWriteUTF16LE /BOM $R8 "$R9"
    FileClose $R8
  ${Else}
    MessageBox MB_OK|MB_ICONEXCLAMATION "$R9"
  ${EndIf}
  SetErrorLevel 2
  Quit
FunctionEnd

; A program that runs keeps its file from being written to.
Function ${UN}WaitUntilClosed
  ${Do}
    ClearErrors
    IfFileExists "$INSTDIR\python\${PYTHON_LIBRARY}" 0 closed
    FileOpen $R7 "$INSTDIR\python\${PYTHON_LIBRARY}" a
    IfErrors running
    FileClose $R7
    Goto closed
    running:
    ${If} ${Silent}
      Push "$(RUNNING)"
      Call ${UN}Refuse
    ${EndIf}
    MessageBox MB_RETRYCANCEL|MB_ICONINFORMATION "$(RUNNING)" IDRETRY again
    SetErrorLevel 1
    Quit
    again:
  ${Loop}
  closed:
  ClearErrors
FunctionEnd
!macroend
!insertmacro Stopping ""
!insertmacro Stopping "un."

Function .onInit
  Delete "${SAID}"
  ${Unless} ${AtLeastBuild} ${LEAST_BUILD}
    Push "$(OLD_WINDOWS)"
    Call Refuse
  ${EndUnless}
  ReadRegStr $0 HKCU "${UNINSTALL}" "DisplayVersion"
  ${If} $0 != ""
    ${VersionCompare} "$0" "${VERSION}" $1
    ${If} $1 == 1
      Push "$(DOWNGRADE)"
      Call Refuse
    ${EndIf}
    ReadRegStr $1 HKCU "${UNINSTALL}" "InstallLocation"
    ${If} $1 != ""
      StrCpy $INSTDIR $1
    ${EndIf}
  ${EndIf}
  ReadRegStr $Autostart HKCU "${RUN}" "Poolhouse"
  StrCpy $OnPath 1
  ${GetParameters} $0
  ${GetOptions} $0 "/AUTOSTART" $1
  ${Unless} ${Errors}
    StrCpy $Autostart 1
  ${EndUnless}
  ${GetOptions} $0 "/NOPATH" $1
  ${Unless} ${Errors}
    StrCpy $OnPath ""
  ${EndUnless}
  ClearErrors
  Call CheckSpace
  Call WaitUntilClosed
FunctionEnd

; An update frees what it replaces, but only after it began: the space of a whole installation must be there.
Function CheckSpace
  StrCpy $0 $INSTDIR
  ${Do}
    IfFileExists "$0\*.*" found
    ${GetParent} $0 $0
  ${LoopUntil} $0 == ""
  found:
  ${GetRoot} "$INSTDIR" $0
  ${DriveSpace} "$0\" "/D=F /S=M" $1
  ${If} $1 < ${NEEDED_MB}
    Push "$(NO_SPACE)"
    Call Refuse
  ${EndIf}
FunctionEnd

Function OptionsPage
  !insertmacro MUI_HEADER_TEXT "$(OPTIONS_TITLE)" "$(OPTIONS_SUBTITLE)"
  nsDialogs::Create 1018
  Pop $Dialog
  ${NSD_CreateLabel} 0 0 100% 34u "$(OPTIONS_TEXT)"
  Pop $0
  ${NSD_CreateCheckbox} 0 42u 100% 12u "$(AUTOSTART)"
  Pop $AutostartBox
  ${NSD_CreateCheckbox} 0 60u 100% 12u "$(ON_PATH)"
  Pop $PathBox
  ${If} $Autostart != ""
    ${NSD_Check} $AutostartBox
  ${EndIf}
  ${If} $OnPath != ""
    ${NSD_Check} $PathBox
  ${EndIf}
  GetDlgItem $0 $HWNDPARENT 1
  SendMessage $0 ${WM_SETTEXT} 0 "STR:$(INSTALL)"
  nsDialogs::Show
FunctionEnd

Function OptionsLeave
  ${NSD_GetState} $AutostartBox $0
  StrCpy $Autostart ""
  ${If} $0 == ${BST_CHECKED}
    StrCpy $Autostart 1
  ${EndIf}
  ${NSD_GetState} $PathBox $0
  StrCpy $OnPath ""
  ${If} $0 == ${BST_CHECKED}
    StrCpy $OnPath 1
  ${EndIf}
FunctionEnd

Section
  SetOutPath "$INSTDIR"
  FileOpen $0 "$INSTDIR\installing" w
  FileWrite $0 "${VERSION}"
  FileClose $0
  WriteUninstaller "$INSTDIR\uninstall.exe"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Poolhouse"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\Poolhouse.exe"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Poolhouse authors"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" ${KIB}
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
  !insertmacro RemoveInstalled
  DetailPrint "$(COPYING)"
  SetDetailsPrint none
  !include "${FILES}"
  SetDetailsPrint lastused
  SetOutPath "$INSTDIR"
  DetailPrint "$(PREPARING)"
  nsExec::Exec '"$INSTDIR\python\python.exe" -m compileall -q --invalidation-mode unchecked-hash "$INSTDIR\app" "$INSTDIR\engine" "$INSTDIR\libraries"'
  Pop $0 ; a file that was not compiled now is compiled when it is first used
  nsExec::Exec '"$INSTDIR\Poolhouse.exe" /link "${LINK}"'
  Pop $0
  ${If} $0 != 0
    CreateShortcut "${LINK}" "$INSTDIR\Poolhouse.exe"
  ${EndIf}
  ${If} $OnPath != ""
    nsExec::Exec '"$INSTDIR\Poolhouse.exe" /path add'
  ${Else}
    nsExec::Exec '"$INSTDIR\Poolhouse.exe" /path remove'
  ${EndIf}
  Pop $0
  ${If} $Autostart != ""
    WriteRegStr HKCU "${RUN}" "Poolhouse" '$INSTDIR\Poolhouse.exe --hidden'
    ${WordFind} "$INSTDIR" " " "E+1" $0
    ${Unless} ${Errors}
      WriteRegStr HKCU "${RUN}" "Poolhouse" '"$INSTDIR\Poolhouse.exe" --hidden'
    ${EndUnless}
  ${Else}
    DeleteRegValue HKCU "${RUN}" "Poolhouse"
    DeleteRegValue HKCU "${APPROVED}" "Poolhouse"
  ${EndIf}
  Delete "$INSTDIR\installing"
SectionEnd

Function FirewallPage
  StrCpy $Command "'python','pythonw' | ForEach-Object { New-NetFirewallRule -DisplayName Poolhouse -Direction Inbound -Action Allow -Profile Private -Program $\"$INSTDIR\python\$$_.exe$\" }"
  !insertmacro MUI_HEADER_TEXT "$(FIREWALL_TITLE)" "$(FIREWALL_SUBTITLE)"
  nsDialogs::Create 1018
  Pop $Dialog
  ${NSD_CreateLabel} 0 0 100% 58u "$(FIREWALL_TEXT)"
  Pop $0
  nsDialogs::CreateControl EDIT "${DEFAULT_STYLES}|${WS_TABSTOP}|${ES_MULTILINE}|${ES_READONLY}|${WS_VSCROLL}" "${WS_EX_CLIENTEDGE}" 0 60u 100% 40u "$Command"
  Pop $0
  ${NSD_CreateButton} 0 104u 80u 14u "$(COPY)"
  Pop $0
  ${NSD_OnClick} $0 CopyCommand
  GetDlgItem $0 $HWNDPARENT 3
  EnableWindow $0 0
  nsDialogs::Show
FunctionEnd

Function CopyCommand
  Pop $0
  System::Call 'user32::OpenClipboard(p $HWNDPARENT) i .r0'
  ${If} $0 != 0
    System::Call 'user32::EmptyClipboard()'
    StrLen $1 $Command
    IntOp $1 $1 + 1
    IntOp $1 $1 * 2
    System::Call 'kernel32::GlobalAlloc(i 2, p r1) p .r2'
    System::Call 'kernel32::GlobalLock(p r2) p .r3'
    System::Call 'kernel32::lstrcpyW(p r3, w "$Command")'
    System::Call 'kernel32::GlobalUnlock(p r2)'
    System::Call 'user32::SetClipboardData(i 13, p r2)'
    System::Call 'user32::CloseClipboard()'
  ${EndIf}
FunctionEnd

Function un.onInit
  Delete "${SAID}"
  ${GetParameters} $0
  ${GetOptions} $0 "/DATA" $1
  ${Unless} ${Errors}
    StrCpy $RemoveData 1
  ${EndUnless}
  ClearErrors
  Call un.WaitUntilClosed
FunctionEnd

Function un.DataPage
  !insertmacro MUI_HEADER_TEXT "$(DATA_TITLE)" "$(DATA_SUBTITLE)"
  nsDialogs::Create 1018
  Pop $Dialog
  ${NSD_CreateLabel} 0 0 100% 34u "$(DATA_TEXT)"
  Pop $0
  ${NSD_CreateCheckbox} 0 42u 100% 12u "$(DATA_TOO)"
  Pop $DataBox
  ${NSD_CreateLabel} 12u 57u 94% 34u "$(DATA_WHERE)"
  Pop $0
  GetDlgItem $0 $HWNDPARENT 1
  SendMessage $0 ${WM_SETTEXT} 0 "STR:$(REMOVE)"
  nsDialogs::Show
FunctionEnd

Function un.DataLeave
  ${NSD_GetState} $DataBox $0
  ${If} $0 == ${BST_CHECKED}
    StrCpy $RemoveData 1
  ${EndIf}
FunctionEnd

Section "Uninstall"
  ; Poolhouse's own command also deletes what the system's keyring holds; the rest is for a broken installation.
  ${If} $RemoveData != ""
    nsExec::Exec '"$INSTDIR\bin\poolhouse.exe" erase --yes'
    Pop $0
    RMDir /r "$LOCALAPPDATA\poolhouse"
  ${EndIf}
  nsExec::Exec '"$INSTDIR\Poolhouse.exe" /path remove'
  Pop $0
  Delete "${LINK}"
  DeleteRegValue HKCU "${RUN}" "Poolhouse"
  DeleteRegValue HKCU "${APPROVED}" "Poolhouse"
  DeleteRegKey HKCU "${UNINSTALL}"
  !insertmacro RemoveInstalled
  Delete "$INSTDIR\installing"
  Delete "$INSTDIR\uninstall.exe"
  SetOutPath "$TEMP"
  RMDir "$INSTDIR"
SectionEnd
