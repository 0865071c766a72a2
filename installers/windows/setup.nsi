; The setup program for Windows: per user, without an administrator. setup_program.py gives it the words in capitals and
; the list of files. It changes no setting of the network: the last page but one shows a command for the firewall.
; It removes files by the list that the installed version brought (FILE_LIST), never a whole folder but its own NEW.
; An update unpacks the new version into NEW, and only then puts it in the place of the old one (switch.c).

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
!define NEW "$INSTDIR\${NEW_FOLDER}"
!define HELPER "$PLUGINSDIR\helper.exe" ; a copy of Poolhouse.exe

Name "Poolhouse"
BrandingText "Poolhouse ${VERSION}"
OutFile "${RESULT}"
InstallDir "$LOCALAPPDATA\Programs\Poolhouse"
RequestExecutionLevel user
ManifestDPIAware true
ManifestSupportedOS Win10
; Not solid: a solid block is written whole to the drive of TEMP first, which needs the space twice.
SetCompressor ${COMPRESSOR}
!if ${COMPRESSOR} == lzma
  SetCompressorDictSize 64
!endif
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
Var WasAutostart
Var OnPath
Var RemoveData
Var Command
Var Marked
Var IsFirst
Var Kept

Page custom OptionsPage OptionsLeave
!insertmacro MUI_PAGE_INSTFILES
Page custom FirewallPage
!insertmacro MUI_PAGE_FINISH
UninstPage custom un.DataPage un.DataLeave
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"
!include "${TEXTS}"

!macro Functions UN
; A silent run has nobody to ask, so what it refuses to do is said in a file.
Function ${UN}Refuse
  Pop $R9
  Call ${UN}Unmark
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

; The helper ends a switch to a new version that was broken off. $Kept is then what could not be moved, or "".
Function ${UN}EndSwitch
  InitPluginsDir
  File "/oname=${HELPER}" "${STARTER}"
  StrCpy $Kept ""
  ${If} ${FileExists} "$INSTDIR\${SWITCH_MARK}"
    nsExec::ExecToStack '"${HELPER}" /switch "$INSTDIR"'
    Pop $0
    Pop $1
    ${If} $0 != 0
      StrCpy $Kept "$INSTDIR\$1"
    ${EndIf}
  ${EndIf}
  ${If} $Kept == ""
    nsExec::Exec '"${HELPER}" /old "$INSTDIR"'
    Pop $0
  ${EndIf}
  ClearErrors
FunctionEnd

Function ${UN}RefuseSecond
  System::Call 'kernel32::CreateMutexW(p 0, i 0, w "Local\PoolhouseSetup") p .r1 ?e'
  Pop $0
  ${If} $0 == 183 ; ERROR_ALREADY_EXISTS
    Push "$(SECOND)"
    Call ${UN}Refuse
  ${EndIf}
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
    Call ${UN}Unmark
    SetErrorLevel 1
    Quit
    again:
  ${Loop}
  closed:
  ClearErrors
FunctionEnd

; Windows makes rules that block Python when its question is answered with no, and those win: they go first.
Function ${UN}FirewallRemoval
  ${WordReplace} `$INSTDIR` `'` `''` `+` $R0
  StrCpy $Command "$$p = '$R0\python\python.exe', '$R0\python\pythonw.exe'; (Get-NetFirewallApplicationFilter | Where-Object Program -in $$p | Get-NetFirewallRule) | Remove-NetFirewallRule"
FunctionEnd

Function ${UN}ShowCommand
  Pop $1 ; how far down, in units of dialogs
  nsDialogs::CreateControl EDIT "${DEFAULT_STYLES}|${WS_TABSTOP}|${ES_MULTILINE}|${ES_READONLY}|${WS_VSCROLL}" "${WS_EX_CLIENTEDGE}" 0 $1u 78% 34u "$Command"
  Pop $0
  nsDialogs::CreateControl BUTTON "${DEFAULT_STYLES}|${WS_TABSTOP}" 0 80% $1u 20% 16u "$(COPY)"
  Pop $0
  ${NSD_OnClick} $0 ${UN}CopyCommand
FunctionEnd

Function ${UN}CopyCommand
  Pop $0
  System::Call 'user32::OpenClipboard(p $HWNDPARENT) i .r0'
  ${If} $0 != 0
    System::Call 'user32::EmptyClipboard()'
    StrLen $1 $Command
    IntOp $1 $1 + 1
    IntOp $1 $1 * 2
    System::Call 'kernel32::GlobalAlloc(i 2, p r1) p .r2'
    System::Call 'kernel32::GlobalLock(p r2) p .r3'
    Push $Command ; not in the call's own text, which its quotes would end
    System::Call 'kernel32::lstrcpyW(p r3, w s)'
    System::Call 'kernel32::GlobalUnlock(p r2)'
    System::Call 'user32::SetClipboardData(i 13, p r2) p .r0'
    ${If} $0 P= 0
      System::Call 'kernel32::GlobalFree(p r2)'
    ${EndIf}
    System::Call 'user32::CloseClipboard()'
  ${EndIf}
FunctionEnd
!macroend
!insertmacro Functions ""
!insertmacro Functions "un."

; Undo what this run did before the switch.
Function Unmark
  ${If} $Marked != ""
    SetOutPath "$TEMP"
    RMDir /r "${NEW}"
    ${If} $IsFirst != ""
      Delete "$INSTDIR\uninstall.exe"
      DeleteRegKey HKCU "${UNINSTALL}"
      RMDir "$INSTDIR"
    ${EndIf}
  ${EndIf}
FunctionEnd

; While the file `installing` is there, Poolhouse does not start: nobody can open it while its files go.
Function un.Mark
  StrCpy $Marked ""
  IfFileExists "$INSTDIR\installing" there
  StrCpy $Marked 1
  there:
  ClearErrors
  SetOutPath "$INSTDIR"
  FileOpen $R7 "$INSTDIR\installing" w
  FileWrite $R7 "${VERSION}"
  FileClose $R7
  ${If} ${Errors}
    Push "$(NOT_WRITABLE)"
    Call un.Refuse
  ${EndIf}
FunctionEnd

Function un.Unmark
  ${If} $Marked != ""
    Delete "$INSTDIR\installing"
    SetOutPath "$TEMP"
    RMDir "$INSTDIR"
  ${EndIf}
FunctionEnd

; Remove what the installed version brought, by its list: F file, C folder with compiled files, D folder if it is empty.
; $Kept is then a file that could not be removed, or "".
Function un.RemoveInstalled
  StrCpy $Kept ""
  ClearErrors
  FileOpen $0 "$INSTDIR\${FILE_LIST}" r
  IfErrors none
  next:
    ClearErrors
    FileReadUTF16LE $0 $1
    IfErrors end
    StrCpy $1 $1 -1
    StrCpy $2 $1 1
    StrCpy $1 $1 "" 2
    ${If} $2 == "F"
      Delete "$INSTDIR\$1"
      ${If} ${Errors}
        StrCpy $Kept "$INSTDIR\$1"
      ${EndIf}
    ${ElseIf} $2 == "C"
      Delete "$INSTDIR\$1\__pycache__\*.pyc"
      RMDir "$INSTDIR\$1\__pycache__"
    ${Else}
      RMDir "$INSTDIR\$1"
    ${EndIf}
  Goto next
  end:
  FileClose $0
  ${If} $Kept == ""
    Delete "$INSTDIR\${FILE_LIST}"
  ${EndIf}
  none:
  ClearErrors
FunctionEnd


Function .onInit
  Delete "${SAID}"
  ${Unless} ${AtLeastBuild} ${LEAST_BUILD}
    Push "$(OLD_WINDOWS)"
    Call Refuse
  ${EndUnless}
  Call RefuseSecond
  StrCpy $OnPath 1
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
    Call FindOnPath
  ${EndIf}
  ReadRegStr $WasAutostart HKCU "${RUN}" "Poolhouse"
  StrCpy $Autostart $WasAutostart
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
  Call CheckFolder
  Call CheckSpace
  Call WaitUntilClosed
FunctionEnd

; Set $OnPath to whether this user's PATH names the command. It may be longer than the texts of NSIS.
Function FindOnPath
  StrCpy $OnPath ""
  System::Alloc 65536
  Pop $2
  Push "Path"
  Push "Environment"
  System::Call 'advapi32::RegGetValueW(p 0x80000001, w s, w s, i 0x10000006, p 0, p r2, *i 65536) i .r3'
  ${If} $3 == 0
    Push "$INSTDIR\bin"
    System::Call 'shlwapi::StrStrIW(p r2, w s) p .r4'
    ${If} $4 P<> 0
      StrCpy $OnPath 1
    ${EndIf}
  ${EndIf}
  System::Free $2
FunctionEnd

; Only an empty folder, or one with Poolhouse.
Function CheckFolder
  IfFileExists "$INSTDIR\${FILE_LIST}" ours
  IfFileExists "$INSTDIR\installing" ours
  IfFileExists "$INSTDIR\${SWITCH_MARK}" ours
  IfFileExists "${NEW}\*.*" ours
  FindFirst $0 $1 "$INSTDIR\*.*"
  ${While} $1 != ""
    ${If} $1 != "."
    ${AndIf} $1 != ".."
      FindClose $0
      Push "$(NOT_EMPTY)"
      Call Refuse
    ${EndIf}
    FindNext $0 $1
  ${EndWhile}
  FindClose $0
  ours:
  ClearErrors
FunctionEnd

Function .onInstFailed
  ${If} ${Silent}
    FileOpen $R8 "${SAID}" w
    FileWriteUTF16LE /BOM $R8 "$(BROKEN_OFF)"
    FileClose $R8
  ${EndIf}
  Call Unmark
  SetErrorLevel 2
FunctionEnd

; An update has both versions for a while: the space of a whole installation must be there.
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
  Call EndSwitch
  ${If} $Kept != ""
    Push "$(HELD)"
    Call Refuse
  ${EndIf}
  SetOutPath "$INSTDIR"
  RMDir /r "${NEW}" ; of a run that was killed
  ReadRegStr $0 HKCU "${UNINSTALL}" "DisplayVersion"
  ${If} $0 == ""
    StrCpy $IsFirst 1
  ${EndIf}
  ClearErrors
  CreateDirectory "${NEW}"
  StrCpy $Marked 1
  WriteUninstaller "${NEW}\uninstall.exe"
  ${If} $IsFirst != ""
    CopyFiles /SILENT "${NEW}\uninstall.exe" "$INSTDIR"
  ${EndIf}
  ${If} ${Errors}
    Push "$(NOT_WRITABLE)"
    Call Refuse
  ${EndIf}
  ${If} $IsFirst != "" ; so that what a killed run leaves can be removed
    WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
    Call WriteEntry
  ${EndIf}
  DetailPrint "$(COPYING)"
  SetDetailsPrint none
  !include "${FILES}"
  SetOutPath "${NEW}"
  File "/oname=${FILE_LIST}" "${LIST}"
  SetOutPath "$INSTDIR"
  SetDetailsPrint lastused
  DetailPrint "$(PREPARING)"
  nsExec::Exec '"${NEW}\python\python.exe" -m compileall -q --invalidation-mode unchecked-hash -s "${NEW}" -p "$INSTDIR" "${NEW}\app" "${NEW}\engine" "${NEW}\libraries" "${NEW}\numpy" "${NEW}\qt"'
  Pop $0 ; a file that was not compiled now is compiled when it is first used
  again:
  Call WaitUntilClosed ; it may have been opened since the first page
  nsExec::ExecToStack '"${HELPER}" /switch "$INSTDIR" "${VERSION}"'
  Pop $0
  Pop $1
  ${If} $0 == 1
    ${Unless} ${Silent}
      StrCpy $Kept "$INSTDIR\$1"
      MessageBox MB_RETRYCANCEL|MB_ICONINFORMATION "$(HELD)" IDRETRY again
      Call Unmark
      SetErrorLevel 1
      Quit
    ${EndUnless}
  ${ElseIf} $0 != 0
    StrCpy $Marked "" ; the helper could not put the old version back: both are needed
  ${EndIf}
  ${If} $0 != 0
    StrCpy $Kept "$INSTDIR\$1"
    Push "$(HELD)"
    Call Refuse
  ${EndIf}
  StrCpy $Marked ""
  Call WriteEntry
  nsExec::Exec '"$INSTDIR\Poolhouse.exe" /link "${LINK}"'
  Pop $0
  ${If} $0 != 0
    CreateShortcut "${LINK}" "$INSTDIR\Poolhouse.exe"
  ${EndIf}
  ${If} $OnPath != ""
    nsExec::Exec '"${HELPER}" /path add "$INSTDIR"'
  ${Else}
    nsExec::Exec '"${HELPER}" /path remove "$INSTDIR"'
  ${EndIf}
  Pop $0
  ; What is there already stays: it may open another home, or be turned off in the Task Manager.
  ${If} $Autostart != ""
    ${If} $WasAutostart == ""
      WriteRegStr HKCU "${RUN}" "Poolhouse" '$INSTDIR\Poolhouse.exe --hidden'
      ${WordFind} "$INSTDIR" " " "E+1" $0
      ${Unless} ${Errors}
        WriteRegStr HKCU "${RUN}" "Poolhouse" '"$INSTDIR\Poolhouse.exe" --hidden'
      ${EndUnless}
      DeleteRegValue HKCU "${APPROVED}" "Poolhouse"
    ${EndIf}
  ${Else}
    DeleteRegValue HKCU "${RUN}" "Poolhouse"
    DeleteRegValue HKCU "${APPROVED}" "Poolhouse"
  ${EndIf}
SectionEnd

; Write what Windows' settings show, except for the version, which the switch writes.
Function WriteEntry
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Poolhouse"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\Poolhouse.exe"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Poolhouse authors"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" ${KIB}
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
FunctionEnd

Function FirewallPage
  Call FirewallRemoval
  StrCpy $Command "$Command; $$p | ForEach-Object { New-NetFirewallRule -DisplayName Poolhouse -Direction Inbound -Action Allow -Profile Private -Program $$_ }"
  !insertmacro MUI_HEADER_TEXT "$(FIREWALL_TITLE)" "$(FIREWALL_SUBTITLE)"
  nsDialogs::Create 1018
  Pop $Dialog
  ${NSD_CreateLabel} 0 0 100% 82u "$(FIREWALL_TEXT)"
  Pop $0
  Push 86
  Call ShowCommand
  GetDlgItem $0 $HWNDPARENT 3
  EnableWindow $0 0
  nsDialogs::Show
FunctionEnd

Function un.onInit
  Delete "${SAID}"
  Call un.RefuseSecond
  ReadRegStr $0 HKCU "${UNINSTALL}" "InstallLocation"
  ${If} $0 != ""
  ${AndIf} $0 != $INSTDIR
    Push "$(ELSEWHERE)"
    Call un.Refuse
  ${EndIf}
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
  ${NSD_CreateLabel} 12u 55u 94% 20u "$(DATA_WHERE)"
  Pop $0
  ${NSD_CreateLabel} 0 80u 100% 20u "$(FIREWALL_LEFT)"
  Pop $0
  Call un.FirewallRemoval
  Push 102
  Call un.ShowCommand
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
  Call un.EndSwitch
  ${If} $Kept != ""
    Push "$(HELD)"
    Call un.Refuse
  ${EndIf}
  Call un.Mark
  Call un.WaitUntilClosed
  ; Only Poolhouse's own command knows which data is its own; it also deletes what the system's keyring holds.
  ${If} $RemoveData != ""
    nsExec::Exec '"$INSTDIR\python\python.exe" -m app erase --yes --keep-other-folders'
    Pop $0
    ${If} $0 != 0
      Push "$(DATA_KEPT)"
      Call un.Refuse
    ${EndIf}
  ${EndIf}
  StrCpy $Marked ""
  nsExec::Exec '"${HELPER}" /path remove "$INSTDIR"'
  Pop $0
  Delete "${LINK}"
  DeleteRegValue HKCU "${RUN}" "Poolhouse"
  DeleteRegValue HKCU "${APPROVED}" "Poolhouse"
  SetDetailsPrint none
  RMDir /r "${NEW}" ; of an installation that was killed
  Call un.RemoveInstalled
  SetDetailsPrint lastused
  ; Settings lists Poolhouse until all is gone, so that it can be removed again.
  ${If} $Kept != ""
    Push "$(HELD)"
    Call un.Refuse
  ${EndIf}
  Delete "$INSTDIR\installing"
  SetOutPath "$TEMP"
  ; Its file is in use for a moment: what was started has started a copy of itself, which is what runs here.
  ${For} $0 1 10
    ClearErrors
    Delete "$INSTDIR\uninstall.exe"
    RMDir "$INSTDIR"
    ${IfNot} ${Errors}
      ${ExitFor}
    ${EndIf}
    Sleep 200
  ${Next}
  DeleteRegKey HKCU "${UNINSTALL}"
SectionEnd
