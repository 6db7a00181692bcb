<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE">
<context>
    <name>App</name>
    <message>
        <source>Leaving the swarm, then skep ends. Quit again if saving takes too long.</source>
        <translation>skep verlässt den Schwarm und endet dann. Beende es noch einmal, wenn das Speichern zu lange dauert.</translation>
    </message>
    <message>
        <source>Joined %1.</source>
        <translation>%1 beigetreten.</translation>
    </message>
    <message>
        <source>This desktop has no tray. skep continues while its window is closed; start skep again to open it.</source>
        <translation>Dieser Desktop hat keinen Infobereich. skep läuft weiter, wenn sein Fenster geschlossen ist; starte skep noch einmal, um es zu öffnen.</translation>
    </message>
    <message>
        <source>skep continues in the tray.</source>
        <translation>skep läuft im Infobereich weiter.</translation>
    </message>
    <message>
        <source>Quit is in its menu.</source>
        <translation>„Beenden“ steht in seinem Menü.</translation>
    </message>
</context>
<context>
    <name>Day</name>
    <message>
        <source>Today: why it trained or did not</source>
        <translation>Heute: warum trainiert wurde oder nicht</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
    <message>
        <source>%1: why it trained or did not</source>
        <translation>%1: warum trainiert wurde oder nicht</translation>
    </message>
    <message>
        <source>%1 to %2, share %3: %4</source>
        <translation>%1 bis %2, Anteil %3: %4</translation>
    </message>
    <message>
        <source>Asleep</source>
        <translation>Im Ruhezustand</translation>
    </message>
    <message>
        <source>No swarm</source>
        <translation>Kein Schwarm</translation>
    </message>
    <message>
        <source>Nothing yet today. While you are in a project, each change of the share is shown here.</source>
        <translation>Heute noch nichts. Während du bei einem Projekt bist, steht hier jede Änderung des Anteils.</translation>
    </message>
    <message>
        <source>In no project on that day.</source>
        <translation>An diesem Tag bei keinem Projekt.</translation>
    </message>
</context>
<context>
    <name>DayCard</name>
    <message>
        <source>The day before</source>
        <translation>Der Tag davor</translation>
    </message>
    <message>
        <source>The day after</source>
        <translation>Der Tag danach</translation>
    </message>
    <message>
        <source>Share of this computer over the day</source>
        <translation>Anteil dieses Computers im Lauf des Tages</translation>
    </message>
    <message>
        <source>Height is the share. Point at a stretch to see why; click it for its setting.</source>
        <translation>Die Höhe ist der Anteil. Zeig auf ein Stück, um den Grund zu sehen; ein Klick öffnet seine Einstellung.</translation>
    </message>
</context>
<context>
    <name>Devices</name>
    <message>
        <source>Works for small projects.</source>
        <translation>Reicht für kleine Projekte.</translation>
    </message>
    <message>
        <source>Ready to train.</source>
        <translation>Bereit zum Trainieren.</translation>
    </message>
    <message>
        <source>Ready to train, with %1 of memory.</source>
        <translation>Bereit zum Trainieren, mit %1 Speicher.</translation>
    </message>
    <message>
        <source>All graphics cards</source>
        <translation>Alle Grafikkarten</translation>
    </message>
    <message>
        <source>skep found %1.</source>
        <translation>skep hat %1 gefunden.</translation>
    </message>
    <message>
        <source>skep found no GPU it can use, so the processor will train. That suits small projects.</source>
        <translation>skep hat keine nutzbare GPU gefunden, also trainiert der Prozessor. Das passt zu kleinen Projekten.</translation>
    </message>
    <message>
        <source>skep found nothing it can train on.</source>
        <translation>skep hat nichts gefunden, womit es trainieren kann.</translation>
    </message>
    <message>
        <source>Gentle</source>
        <translation>Sanft</translation>
    </message>
    <message>
        <source>Quiet and cool.</source>
        <translation>Leise und kühl.</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>Ausgewogen</translation>
    </message>
    <message>
        <source>A little while you work, most of the time else.</source>
        <translation>Ein wenig, während du arbeitest, sonst die meiste Zeit.</translation>
    </message>
    <message>
        <source>Generous</source>
        <translation>Großzügig</translation>
    </message>
    <message>
        <source>A good part while you work, all of the time else.</source>
        <translation>Ein guter Teil, während du arbeitest, sonst die ganze Zeit.</translation>
    </message>
    <message>
        <source>pauses</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>While I use this computer: %1</source>
        <translation>Wenn ich da bin: %1</translation>
    </message>
    <message>
        <source>While I&apos;m away: %1</source>
        <translation>Wenn ich weg bin: %1</translation>
    </message>
</context>
<context>
    <name>Doctor</name>
    <message>
        <source>Connection to %1</source>
        <translation>Verbindung zu %1</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>OK</source>
        <translation>In Ordnung</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>Problem</source>
        <translation>Problem</translation>
    </message>
    <message>
        <source>Skipped</source>
        <translation>Entfällt</translation>
    </message>
    <message>
        <source>Checking … this takes up to half a minute and changes nothing.</source>
        <translation>Wird geprüft … das dauert bis zu einer halben Minute und ändert nichts.</translation>
    </message>
    <message>
        <source>Something keeps skep from joining. What to do stands below it.</source>
        <translation>Etwas verhindert das Beitreten. Was zu tun ist, steht jeweils darunter.</translation>
    </message>
    <message>
        <source>Nothing keeps skep from joining. See the warnings.</source>
        <translation>Nichts verhindert das Beitreten. Beachte die Warnungen.</translation>
    </message>
    <message>
        <source>Everything is in order.</source>
        <translation>Alles ist in Ordnung.</translation>
    </message>
</context>
<context>
    <name>DoctorDialog</name>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Check again</source>
        <translation>Noch einmal prüfen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>Kopiert.</translation>
    </message>
</context>
<context>
    <name>ErrorReporter</name>
    <message>
        <source>Report of an error</source>
        <translation>Bericht über einen Fehler</translation>
    </message>
    <message>
        <source>This report is not sent. Copy it to report the error.</source>
        <translation>Dieser Bericht wird nicht gesendet. Kopiere ihn, um den Fehler zu melden.</translation>
    </message>
    <message>
        <source>Diagnostics</source>
        <translation>Diagnose</translation>
    </message>
    <message>
        <source>A description of this skep for people who help you. Addresses, keys and your name are masked, and nothing is sent. Read it before you pass it on.</source>
        <translation>Eine Beschreibung dieses skep für alle, die dir helfen. Adressen, Schlüssel und dein Name sind unkenntlich, und nichts wird gesendet. Lies sie, bevor du sie weitergibst.</translation>
    </message>
    <message>
        <source>Gathering …</source>
        <translation>Wird gesammelt …</translation>
    </message>
    <message>
        <source>Written to %1</source>
        <translation>Geschrieben nach %1</translation>
    </message>
</context>
<context>
    <name>FirstRun</name>
    <message>
        <source>First steps with skep</source>
        <translation>Erste Schritte mit skep</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>Überspringen</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>Zurück</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>What this computer can do</source>
        <translation>Was dieser Computer kann</translation>
    </message>
    <message>
        <source>Looking …</source>
        <translation>Wird gesucht …</translation>
    </message>
    <message>
        <source>How much may skep compute? Every limit can be changed at any time in the settings.</source>
        <translation>Wie viel darf skep rechnen? Jede Grenze lässt sich jederzeit in den Einstellungen ändern.</translation>
    </message>
    <message>
        <source>Your limits</source>
        <translation>Deine Grenzen</translation>
    </message>
    <message>
        <source>skep trains one project at a time. The practice swarm shows how skep works, on this computer only.</source>
        <translation>skep trainiert immer nur ein Projekt. Der Übungsschwarm zeigt, wie skep arbeitet, nur auf diesem Computer.</translation>
    </message>
    <message>
        <source>A project</source>
        <translation>Ein Projekt</translation>
    </message>
    <message>
        <source>A small model learns to write Python. No data leaves this computer.</source>
        <translation>Ein kleines Modell lernt, Python zu schreiben. Keine Daten verlassen diesen Computer.</translation>
    </message>
    <message>
        <source>Start and join</source>
        <translation>Starten und beitreten</translation>
    </message>
    <message>
        <source>Another project</source>
        <translation>Ein anderes Projekt</translation>
    </message>
    <message>
        <source>Add one by a file or a link that somebody gave you.</source>
        <translation>Füge eines mit einer Datei oder einem Link hinzu, den du bekommen hast.</translation>
    </message>
    <message>
        <source>Go to Projects</source>
        <translation>Zu den Projekten</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>JoiningView</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>KeyringConsent</name>
    <message>
        <source>Keep the invitation without a keyring?</source>
        <translation>Die Einladung ohne Schlüsselbund aufbewahren?</translation>
    </message>
    <message>
        <source>An invitation is kept in the system&apos;s keyring, encrypted. You can start or unlock the keyring and accept the invitation again. Or skep keeps it in a file that only you can read; it is not encrypted.</source>
        <translation>Eine Einladung liegt verschlüsselt im Schlüsselbund des Systems. Du kannst den Schlüsselbund starten oder entsperren und die Einladung noch einmal annehmen. Oder skep bewahrt sie in einer Datei auf, die nur du lesen kannst; sie ist nicht verschlüsselt.</translation>
    </message>
    <message>
        <source>The file would lie in %1.</source>
        <translation>Die Datei läge in %1.</translation>
    </message>
    <message>
        <source>Keep it in a file</source>
        <translation>In einer Datei aufbewahren</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
</context>
<context>
    <name>LimitsRow</name>
    <message>
        <source>Share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>Memory left free</source>
        <translation>Freier Speicher</translation>
    </message>
    <message>
        <source>as for all</source>
        <translation>wie für alle</translation>
    </message>
</context>
<context>
    <name>LivePlot</name>
    <message>
        <source>Samples a second and share, over ten minutes</source>
        <translation>Beispiele je Sekunde und Anteil, über zehn Minuten</translation>
    </message>
    <message>
        <source>Shown after the first minutes of training.</source>
        <translation>Erscheint nach den ersten Minuten des Trainings.</translation>
    </message>
    <message>
        <source>samples a second</source>
        <translation>Beispiele je Sekunde</translation>
    </message>
    <message>
        <source>share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>10 minutes ago</source>
        <translation>vor 10 Minuten</translation>
    </message>
    <message>
        <source>now</source>
        <translation>jetzt</translation>
    </message>
</context>
<context>
    <name>Lookups</name>
    <message>
        <source>Written to %1</source>
        <translation>Geschrieben nach %1</translation>
    </message>
    <message>
        <source>Save the model</source>
        <translation>Modell speichern</translation>
    </message>
    <message>
        <source>Models (*.safetensors)</source>
        <translation>Modelle (*.safetensors)</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
</context>
<context>
    <name>Now</name>
    <message>
        <source>Joining %1.</source>
        <translation>Beitritt zu %1.</translation>
    </message>
    <message>
        <source>Not in a project, and paused.</source>
        <translation>In keinem Projekt, und pausiert.</translation>
    </message>
    <message>
        <source>Not in a project.</source>
        <translation>In keinem Projekt.</translation>
    </message>
    <message>
        <source>asked %1</source>
        <translation>verlangt: %1</translation>
    </message>
    <message>
        <source>measured, %1 asked</source>
        <translation>gemessen, %1 verlangt</translation>
    </message>
    <message>
        <source>%1&#xa0;pending · %2&#xa0;lost</source>
        <translation>%1&#xa0;ausstehend · %2&#xa0;verloren</translation>
    </message>
    <message>
        <source>Samples since joining that were averaged with another peer&apos;s. Pending ones wait for the round at the end of the epoch.</source>
        <translation>Beispiele seit dem Beitritt, die mit denen eines anderen Peers gemittelt wurden. Ausstehende warten auf die Runde am Ende der Epoche.</translation>
    </message>
    <message>
        <source>Samples confirmed</source>
        <translation>Bestätigte Beispiele</translation>
    </message>
    <message>
        <source>Samples a second</source>
        <translation>Beispiele je Sekunde</translation>
    </message>
    <message>
        <source>loss %1</source>
        <translation>Verlust %1</translation>
    </message>
    <message>
        <source>%1 free</source>
        <translation>%1 frei</translation>
    </message>
    <message>
        <source>The device is known once a project is joined.</source>
        <translation>Das Gerät steht fest, sobald du einem Projekt beigetreten bist.</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Other computers whose data was averaged with yours in the last round.</source>
        <translation>Andere Computer, deren Daten in der letzten Runde mit deinen gemittelt wurden.</translation>
    </message>
    <message>
        <source>Peers</source>
        <translation>Peers</translation>
    </message>
    <message>
        <source>through a router, outgoing only</source>
        <translation>über einen Router, nur ausgehend</translation>
    </message>
    <message>
        <source>through a seed</source>
        <translation>über einen Seed</translation>
    </message>
    <message>
        <source>direct</source>
        <translation>direkt</translation>
    </message>
    <message>
        <source>direct, not verified</source>
        <translation>direkt, nicht geprüft</translation>
    </message>
    <message>
        <source>1 peer</source>
        <translation>1 Peer</translation>
    </message>
    <message>
        <source>%1 peers</source>
        <translation>%1 Peers</translation>
    </message>
    <message>
        <source>epoch %1</source>
        <translation>Epoche %1</translation>
    </message>
    <message>
        <source>%1 of %2 thousand samples</source>
        <translation>%1 von %2 Tausend Beispielen</translation>
    </message>
    <message>
        <source>%1 of %2 samples</source>
        <translation>%1 von %2 Beispielen</translation>
    </message>
    <message>
        <source>For 15 minutes</source>
        <translation>Für 15 Minuten</translation>
    </message>
    <message>
        <source>For 1 hour</source>
        <translation>Für 1 Stunde</translation>
    </message>
    <message>
        <source>Until I resume</source>
        <translation>Bis ich fortsetze</translation>
    </message>
    <message>
        <source>Until tomorrow, %1</source>
        <translation>Bis morgen, %1</translation>
    </message>
</context>
<context>
    <name>NowPage</name>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
    <message>
        <source>Lend this computer to a project. What it does then is shown here.</source>
        <translation>Leih diesen Computer einem Projekt. Was er dann tut, steht hier.</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>Opens the lengths of a pause</source>
        <translation>Öffnet die Längen einer Pause</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Choose a project</source>
        <translation>Projekt wählen</translation>
    </message>
    <message>
        <source>Save the model …</source>
        <translation>Modell speichern …</translation>
    </message>
    <message>
        <source>Leave</source>
        <translation>Verlassen</translation>
    </message>
    <message>
        <source>Leave now</source>
        <translation>Sofort verlassen</translation>
    </message>
    <message>
        <source>The swarm&apos;s epoch</source>
        <translation>Die Epoche des Schwarms</translation>
    </message>
    <message>
        <source>An epoch ends when the swarm together has trained on its samples.</source>
        <translation>Eine Epoche endet, wenn der Schwarm zusammen mit so vielen Beispielen trainiert hat.</translation>
    </message>
    <message>
        <source>Progress of the epoch</source>
        <translation>Fortschritt der Epoche</translation>
    </message>
    <message>
        <source>The last ten minutes</source>
        <translation>Die letzten zehn Minuten</translation>
    </message>
    <message>
        <source>Rules that hold now</source>
        <translation>Regeln, die jetzt gelten</translation>
    </message>
    <message>
        <source>Five stages</source>
        <translation>Fünf Stufen</translation>
    </message>
    <message>
        <source>Compute share %1</source>
        <translation>Rechenanteil %1</translation>
    </message>
</context>
<context>
    <name>PackCard</name>
    <message>
        <source>Compute pack</source>
        <translation>Rechenpaket</translation>
    </message>
    <message>
        <source>Removes the compute packs that are not used</source>
        <translation>Entfernt die Rechenpakete, die nicht verwendet werden</translation>
    </message>
</context>
<context>
    <name>PackWords</name>
    <message>
        <source>Free %1</source>
        <translation>%1 freigeben</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Fetching the compute pack %1</source>
        <translation>Das Rechenpaket %1 wird geholt</translation>
    </message>
    <message>
        <source>Laying down the compute pack %1</source>
        <translation>Das Rechenpaket %1 wird abgelegt</translation>
    </message>
    <message>
        <source>Trying the compute pack %1</source>
        <translation>Das Rechenpaket %1 wird ausprobiert</translation>
    </message>
    <message>
        <source>A step of training on the device, in a process of its own.</source>
        <translation>Ein Trainingsschritt auf dem Gerät, in einem eigenen Prozess.</translation>
    </message>
    <message>
        <source>about %1 left</source>
        <translation>noch etwa %1</translation>
    </message>
    <message>
        <source>Looking for what suits this computer …</source>
        <translation>Gesucht wird, was zu diesem Computer passt …</translation>
    </message>
    <message>
        <source>skep needs a compute pack to train: the build of PyTorch that fits this computer.</source>
        <translation>Zum Trainieren braucht skep ein Rechenpaket: das PyTorch, das zu diesem Computer passt.</translation>
    </message>
    <message>
        <source>The compute pack %1 is used.</source>
        <translation>Das Rechenpaket %1 wird verwendet.</translation>
    </message>
    <message>
        <source>%1 would be fetched; it needs %2 of the disk.</source>
        <translation>%1 würden geholt; es braucht %2 des Datenträgers.</translation>
    </message>
    <message>
        <source>It would lie in %1</source>
        <translation>Es läge in %1</translation>
    </message>
    <message>
        <source>Use %1</source>
        <translation>%1 verwenden</translation>
    </message>
    <message>
        <source>Fetch %1</source>
        <translation>%1 holen</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal versuchen</translation>
    </message>
</context>
<context>
    <name>PermissionPage</name>
    <message>
        <source>← Projects</source>
        <translation>← Projekte</translation>
    </message>
    <message>
        <source>Join</source>
        <translation>Beitreten</translation>
    </message>
    <message>
        <source>It downloads</source>
        <translation>Es lädt herunter</translation>
    </message>
    <message>
        <source>It sends</source>
        <translation>Es sendet</translation>
    </message>
    <message>
        <source>It needs, as its publisher says</source>
        <translation>Es braucht, wie sein Herausgeber sagt</translation>
    </message>
    <message>
        <source>Who and what</source>
        <translation>Wer und was</translation>
    </message>
    <message>
        <source>Leave the other project first; one at a time.</source>
        <translation>Verlasse zuerst das andere Projekt; es geht immer nur eines.</translation>
    </message>
    <message>
        <source>The training process is kept from</source>
        <translation>Der Trainingsprozess wird ferngehalten von</translation>
    </message>
</context>
<context>
    <name>ProblemStrip</name>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Close this message</source>
        <translation>Diese Meldung schließen</translation>
    </message>
</context>
<context>
    <name>Problems</name>
    <message>
        <source>Open Projects</source>
        <translation>Projekte öffnen</translation>
    </message>
    <message>
        <source>Open Settings</source>
        <translation>Einstellungen öffnen</translation>
    </message>
    <message>
        <source>Show the report</source>
        <translation>Bericht zeigen</translation>
    </message>
    <message>
        <source>Check the connection</source>
        <translation>Verbindung prüfen</translation>
    </message>
    <message>
        <source>Open the setting</source>
        <translation>Einstellung öffnen</translation>
    </message>
    <message>
        <source>Diagnose …</source>
        <translation>Diagnose öffnen …</translation>
    </message>
    <message>
        <source>Internal error in skep</source>
        <translation>Interner Fehler in skep</translation>
    </message>
    <message>
        <source>Versions</source>
        <translation>Versionen</translation>
    </message>
</context>
<context>
    <name>ProjectActions</name>
    <message>
        <source>Fetching the manifest …</source>
        <translation>Das Manifest wird geholt …</translation>
    </message>
    <message>
        <source>This computer is invited to %1 now.</source>
        <translation>Dieser Computer ist jetzt zu %1 eingeladen.</translation>
    </message>
    <message>
        <source>The invitation was not kept.</source>
        <translation>Die Einladung wurde nicht aufbewahrt.</translation>
    </message>
    <message>
        <source>Copied: %1</source>
        <translation>Kopiert: %1</translation>
    </message>
</context>
<context>
    <name>ProjectCard</name>
    <message>
        <source>Leave</source>
        <translation>Verlassen</translation>
    </message>
    <message>
        <source>Leave %1</source>
        <translation>%1 verlassen</translation>
    </message>
    <message>
        <source>Leave the other project first; one at a time.</source>
        <translation>Verlasse zuerst das andere Projekt; es geht immer nur eines.</translation>
    </message>
    <message>
        <source>Start and join</source>
        <translation>Starten und beitreten</translation>
    </message>
    <message>
        <source>Save the model …</source>
        <translation>Modell speichern …</translation>
    </message>
    <message>
        <source>Save the model of %1</source>
        <translation>Modell von %1 speichern</translation>
    </message>
    <message>
        <source>Check the connection</source>
        <translation>Verbindung prüfen</translation>
    </message>
    <message>
        <source>Check the connection to %1</source>
        <translation>Verbindung zu %1 prüfen</translation>
    </message>
    <message>
        <source>Look and join</source>
        <translation>Ansehen und beitreten</translation>
    </message>
    <message>
        <source>Look</source>
        <translation>Ansehen</translation>
    </message>
</context>
<context>
    <name>Projects</name>
    <message>
        <source>up to %1 each way per epoch</source>
        <translation>bis zu %1 je Richtung und Epoche</translation>
    </message>
    <message>
        <source>about %1 up and %2 down an hour</source>
        <translation>etwa %1 hinauf und %2 herunter je Stunde</translation>
    </message>
    <message>
        <source>%1 of GPU memory</source>
        <translation>%1 GPU-Speicher</translation>
    </message>
    <message>
        <source>about %1 samples an hour</source>
        <translation>etwa %1 Beispiele je Stunde</translation>
    </message>
    <message>
        <source>A small swarm on this computer, to try skep. A small model learns to write Python. No data leaves this computer.</source>
        <translation>Ein kleiner Schwarm auf diesem Computer, um skep auszuprobieren. Ein kleines Modell lernt, Python zu schreiben. Keine Daten verlassen diesen Computer.</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>Fits</source>
        <translation>Passt</translation>
    </message>
    <message>
        <source>no network traffic</source>
        <translation>kein Netzverkehr</translation>
    </message>
    <message>
        <source>Starting the practice swarm …</source>
        <translation>Der Übungsschwarm startet …</translation>
    </message>
    <message>
        <source>Not available</source>
        <translation>Nicht verfügbar</translation>
    </message>
    <message>
        <source>This computer has all that the project needs.</source>
        <translation>Dieser Computer hat alles, was das Projekt braucht.</translation>
    </message>
    <message>
        <source>Fits, with limits</source>
        <translation>Passt mit Einschränkungen</translation>
    </message>
    <message>
        <source>Too big</source>
        <translation>Zu groß</translation>
    </message>
    <message>
        <source>Joining</source>
        <translation>Tritt bei</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Trainiert</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Trying again</source>
        <translation>Neuer Versuch</translation>
    </message>
    <message>
        <source>Leaving</source>
        <translation>Verlässt</translation>
    </message>
    <message>
        <source>What this system keeps it from could not be tried; the log has the details</source>
        <translation>Wovon dieses System ihn fernhält, konnte nicht probiert werden; das Protokoll hat Einzelheiten</translation>
    </message>
    <message>
        <source>Not on this system: %1 (%2)</source>
        <translation>Nicht auf diesem System: %1 (%2)</translation>
    </message>
    <message>
        <source>Training data listed at %1</source>
        <translation>Trainingsdaten, aufgelistet unter %1</translation>
    </message>
    <message>
        <source>%1 from %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>The publisher&apos;s signed checkpoint of the model, never one from other peers</source>
        <translation>Der signierte Checkpoint des Modells vom Herausgeber, nie einer von anderen Peers</translation>
    </message>
    <message>
        <source>The model as the swarm has trained it so far, from other peers</source>
        <translation>Das Modell, wie der Schwarm es bisher trainiert hat, von anderen Peers</translation>
    </message>
    <message>
        <source>About %1 up and %2 down an hour, in a swarm of %3 computers like this one; %4 each way if epochs were as short as they can be</source>
        <translation>Etwa %1 hinauf und %2 herunter je Stunde, in einem Schwarm aus %3 Computern wie diesem; %4 in jede Richtung, wären die Epochen so kurz wie möglich</translation>
    </message>
    <message>
        <source>Results of training, up to %1 each epoch, and again where a round has to be repeated</source>
        <translation>Ergebnisse des Trainings, bis zu %1 je Epoche, und nochmals, wo eine Runde wiederholt werden muss</translation>
    </message>
    <message>
        <source>Copies of the model, when another peer asks for one</source>
        <translation>Kopien des Modells, wenn ein anderer Peer darum bittet</translation>
    </message>
    <message>
        <source>Other peers see this computer&apos;s network address, its identity, which is the same in all projects by invitation, how fast it trains, and which parts of the data it has used</source>
        <translation>Andere Peers sehen die Netzadresse dieses Computers, seine Identität, die in allen Projekten mit Einladung dieselbe ist, wie schnell er trainiert, und welche Teile der Daten er verwendet hat</translation>
    </message>
    <message>
        <source>The run is finished. Its model is on this computer.</source>
        <translation>Der Lauf ist beendet. Sein Modell ist auf diesem Computer.</translation>
    </message>
    <message>
        <source>Other peers see this computer&apos;s network address, its identity, which it has in this project only, how fast it trains, and which parts of the data it has used</source>
        <translation>Andere Peers sehen die Netzadresse dieses Computers, seine Identität, die er nur in diesem Projekt hat, wie schnell er trainiert, und welche Teile der Daten er verwendet hat</translation>
    </message>
    <message>
        <source>The web servers of the project see this computer&apos;s network address</source>
        <translation>Die Webserver des Projekts sehen die Netzadresse dieses Computers</translation>
    </message>
    <message>
        <source>Copies of the model, when another peer asks and your invitation is a donor&apos;s or a host&apos;s</source>
        <translation>Kopien des Modells, wenn ein anderer Peer darum bittet und deine Einladung die eines Donors oder Hosts ist</translation>
    </message>
    <message>
        <source>The publisher&apos;s list of revoked invitations, every hour</source>
        <translation>Die Liste widerrufener Einladungen des Herausgebers, jede Stunde</translation>
    </message>
    <message>
        <source>Never your files or what you type</source>
        <translation>Niemals deine Dateien oder was du tippst</translation>
    </message>
    <message>
        <source>%1 of memory</source>
        <translation>%1 Arbeitsspeicher</translation>
    </message>
    <message>
        <source>%1 of GPU memory, where there is a GPU</source>
        <translation>%1 GPU-Speicher, wo es eine GPU gibt</translation>
    </message>
    <message>
        <source>%1 of disk</source>
        <translation>%1 auf der Festplatte</translation>
    </message>
    <message>
        <source>The computing of this computer at the share you allow: at full share %1</source>
        <translation>Die Rechenleistung dieses Computers zu dem Anteil, den du erlaubst: bei vollem Anteil %1</translation>
    </message>
    <message>
        <source>%1 Mbit/s upload</source>
        <translation>%1 Mbit/s Upload</translation>
    </message>
    <message>
        <source>Your limits in the settings hold, whatever it needs: for computing, for the memory that stays free, for training data on the disk, for sending and receiving. Only what peers need to find each other does not count for these</source>
        <translation>Deine Grenzen in den Einstellungen gelten, was es auch braucht: fürs Rechnen, für den Speicher, der frei bleibt, für Trainingsdaten auf der Festplatte, fürs Senden und Empfangen. Nur was Peers brauchen, um einander zu finden, zählt dort nicht mit</translation>
    </message>
    <message>
        <source>all computers</source>
        <translation>alle Computer</translation>
    </message>
    <message>
        <source>invited computers only</source>
        <translation>nur eingeladene Computer</translation>
    </message>
    <message>
        <source>%1, %2 parameters</source>
        <translation>%1, %2 Parameter</translation>
    </message>
    <message>
        <source>Published by</source>
        <translation>Herausgegeben von</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>Open to</source>
        <translation>Offen für</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>Homepage</source>
        <translation>Webseite</translation>
    </message>
    <message>
        <source>Valid until</source>
        <translation>Gültig bis</translation>
    </message>
</context>
<context>
    <name>ProjectsPage</name>
    <message>
        <source>Projects</source>
        <translation>Projekte</translation>
    </message>
    <message>
        <source>Add a project</source>
        <translation>Ein Projekt hinzufügen</translation>
    </message>
    <message>
        <source>https:// address of a manifest, or a skep:// link</source>
        <translation>https://-Adresse eines Manifests oder skep://-Link</translation>
    </message>
    <message>
        <source>Address or link of a project</source>
        <translation>Adresse oder Link eines Projekts</translation>
    </message>
    <message>
        <source>Add</source>
        <translation>Hinzufügen</translation>
    </message>
    <message>
        <source>From a file …</source>
        <translation>Aus einer Datei …</translation>
    </message>
    <message>
        <source>A manifest or an invitation can also be dropped here.</source>
        <translation>Ein Manifest oder eine Einladung lässt sich auch hierher ziehen.</translation>
    </message>
    <message>
        <source>Projects by invitation</source>
        <translation>Projekte mit Einladung</translation>
    </message>
    <message>
        <source>Some projects accept invited computers only. Send this computer&apos;s identity to the publisher, and accept the invitation that you get back here.</source>
        <translation>Manche Projekte nehmen nur eingeladene Computer an. Schick dem Herausgeber die Kennung dieses Computers, und nimm hier die Einladung an, die zurückkommt.</translation>
    </message>
    <message>
        <source>Copy my identity</source>
        <translation>Meine Kennung kopieren</translation>
    </message>
    <message>
        <source>Accept an invitation …</source>
        <translation>Einladung annehmen …</translation>
    </message>
    <message>
        <source>Manifests (*.json)</source>
        <translation>Manifeste (*.json)</translation>
    </message>
    <message>
        <source>Accept an invitation</source>
        <translation>Eine Einladung annehmen</translation>
    </message>
    <message>
        <source>Invitations (*.invitation);;All files (*)</source>
        <translation>Einladungen (*.invitation);;Alle Dateien (*)</translation>
    </message>
</context>
<context>
    <name>RuleTester</name>
    <message>
        <source>What would happen if …</source>
        <translation>Was wäre, wenn …</translation>
    </message>
</context>
<context>
    <name>RuleWords</name>
    <message>
        <source>I use this computer</source>
        <translation>ich diesen Computer nutze</translation>
    </message>
    <message>
        <source>nobody uses it</source>
        <translation>ihn niemand nutzt</translation>
    </message>
    <message>
        <source>it runs on battery</source>
        <translation>er mit Akku läuft</translation>
    </message>
    <message>
        <source>it runs on mains</source>
        <translation>er am Netz hängt</translation>
    </message>
    <message>
        <source>a full-screen program opens</source>
        <translation>ein Vollbildprogramm aufgeht</translation>
    </message>
    <message>
        <source>a call or film runs</source>
        <translation>ein Anruf oder Film läuft</translation>
    </message>
    <message>
        <source>another program uses the GPU</source>
        <translation>ein anderes Programm die GPU nutzt</translation>
    </message>
    <message>
        <source>GPU memory runs short</source>
        <translation>der GPU-Speicher knapp wird</translation>
    </message>
    <message>
        <source>others need the processor</source>
        <translation>andere den Prozessor brauchen</translation>
    </message>
    <message>
        <source>the device gets too warm</source>
        <translation>das Gerät zu warm wird</translation>
    </message>
    <message>
        <source>the connection is metered</source>
        <translation>die Verbindung getaktet ist</translation>
    </message>
    <message>
        <source>the connection is not metered</source>
        <translation>die Verbindung nicht getaktet ist</translation>
    </message>
    <message>
        <source>the screen is locked</source>
        <translation>der Bildschirm gesperrt ist</translation>
    </message>
    <message>
        <source>the screen is unlocked</source>
        <translation>der Bildschirm entsperrt ist</translation>
    </message>
    <message>
        <source>Choose a situation.</source>
        <translation>Wähle eine Situation.</translation>
    </message>
    <message>
        <source>%1 skep leaves the swarm meanwhile.</source>
        <translation>%1 skep verlässt den Schwarm solange.</translation>
    </message>
</context>
<context>
    <name>SettingLink</name>
    <message>
        <source>Setting</source>
        <translation>Einstellung</translation>
    </message>
    <message>
        <source>Setting of the rule: %1</source>
        <translation>Einstellung der Regel: %1</translation>
    </message>
</context>
<context>
    <name>SettingRow</name>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>Reset %1</source>
        <translation>%1 zurücksetzen</translation>
    </message>
    <message>
        <source>Back to %1</source>
        <translation>Zurück auf %1</translation>
    </message>
    <message>
        <source>On</source>
        <translation>An</translation>
    </message>
</context>
<context>
    <name>SettingsForm</name>
    <message>
        <source>One of: %1</source>
        <translation>Eines von: %1</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>What if …</source>
        <translation>Was wäre, wenn …</translation>
    </message>
    <message>
        <source>Goes to the rule tester</source>
        <translation>Geht zum Regeltester</translation>
    </message>
    <message>
        <source>Show the first steps again</source>
        <translation>Die ersten Schritte noch einmal zeigen</translation>
    </message>
    <message>
        <source>Diagnostics …</source>
        <translation>Diagnose öffnen …</translation>
    </message>
    <message>
        <source>Look for updates</source>
        <translation>Nach Updates suchen</translation>
    </message>
    <message>
        <source>No setting has “%1” in its words.</source>
        <translation>Keine Einstellung hat „%1“ in ihren Worten.</translation>
    </message>
</context>
<context>
    <name>StartRefusal</name>
    <message>
        <source>Start with the defaults</source>
        <translation>Mit den Vorgaben starten</translation>
    </message>
    <message>
        <source>The damaged file is kept beside the new one.</source>
        <translation>Die beschädigte Datei bleibt neben der neuen liegen.</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
</context>
<context>
    <name>Stats</name>
    <message>
        <source>All projects</source>
        <translation>Alle Projekte</translation>
    </message>
    <message>
        <source>1 epoch</source>
        <translation>1 Epoche</translation>
    </message>
    <message>
        <source>%1 epochs</source>
        <translation>%1 Epochen</translation>
    </message>
    <message>
        <source>no reason recorded</source>
        <translation>kein Grund festgehalten</translation>
    </message>
    <message>
        <source>%1 of it computing</source>
        <translation>davon %1 gerechnet</translation>
    </message>
    <message>
        <source>Time in a swarm with a share above zero. Computing is the part the training itself measured.</source>
        <translation>Zeit in einem Schwarm mit einem Anteil über null. Gerechnet ist der Teil, den das Training selbst gemessen hat.</translation>
    </message>
    <message>
        <source>Trained</source>
        <translation>Trainiert</translation>
    </message>
    <message>
        <source>%1 · %2&#xa0;pending</source>
        <translation>%1 · %2&#xa0;ausstehend</translation>
    </message>
    <message>
        <source>Samples that were averaged with another peer&apos;s and used by the model.</source>
        <translation>Beispiele, die mit denen eines anderen Peers gemittelt und vom Modell genutzt wurden.</translation>
    </message>
    <message>
        <source>Samples confirmed</source>
        <translation>Bestätigte Beispiele</translation>
    </message>
    <message>
        <source>%1&#xa0;lost</source>
        <translation>%1&#xa0;verloren</translation>
    </message>
    <message>
        <source>Confirmed share</source>
        <translation>Bestätigter Anteil</translation>
    </message>
    <message>
        <source>Of the samples that are settled; pending ones wait for the round at the end of the epoch.</source>
        <translation>Von den Beispielen, über die entschieden ist; ausstehende warten auf die Runde am Ende der Epoche.</translation>
    </message>
    <message>
        <source>The device does not report its power.</source>
        <translation>Das Gerät meldet seine Leistung nicht.</translation>
    </message>
    <message>
        <source>Nothing trained yet.</source>
        <translation>Noch nichts trainiert.</translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>Energie</translation>
    </message>
    <message>
        <source>while it trained</source>
        <translation>während trainiert wurde</translation>
    </message>
    <message>
        <source>measured in %1 of %2</source>
        <translation>gemessen in %1 von %2</translation>
    </message>
    <message>
        <source>What the whole device drew while it trained, by its own sensor; other programs&apos; use included.</source>
        <translation>Was das ganze Gerät beim Training verbraucht hat, nach seinem eigenen Sensor; andere Programme eingeschlossen.</translation>
    </message>
    <message>
        <source>Time in the swarm with a share above zero.</source>
        <translation>Zeit im Schwarm mit einem Anteil über null.</translation>
    </message>
    <message>
        <source>Confirmed</source>
        <translation>Bestätigt</translation>
    </message>
    <message>
        <source>Samples averaged with another peer&apos;s.</source>
        <translation>Beispiele, mit denen eines anderen Peers gemittelt.</translation>
    </message>
    <message>
        <source>Pending</source>
        <translation>Ausstehend</translation>
    </message>
    <message>
        <source>Samples whose round is not over yet.</source>
        <translation>Beispiele, deren Runde noch nicht vorbei ist.</translation>
    </message>
    <message>
        <source>Lost</source>
        <translation>Verloren</translation>
    </message>
    <message>
        <source>Samples that were not averaged; the reasons are below.</source>
        <translation>Beispiele, die nicht gemittelt wurden; die Gründe stehen unten.</translation>
    </message>
    <message>
        <source>Of the swarm</source>
        <translation>Am Schwarm</translation>
    </message>
    <message>
        <source>Your part of the epochs that took samples of yours.</source>
        <translation>Dein Teil der Epochen, in die Beispiele von dir eingegangen sind.</translation>
    </message>
    <message>
        <source>What the device drew while it trained.</source>
        <translation>Was das Gerät beim Training verbraucht hat.</translation>
    </message>
    <message>
        <source>%1: %2 samples in %3</source>
        <translation>%1: %2 Beispiele in %3</translation>
    </message>
    <message>
        <source>By hour</source>
        <translation>Nach Stunden</translation>
    </message>
    <message>
        <source>By day</source>
        <translation>Nach Tagen</translation>
    </message>
    <message>
        <source>By week</source>
        <translation>Nach Wochen</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>Beispiele</translation>
    </message>
    <message>
        <source>Hours trained</source>
        <translation>Trainierte Stunden</translation>
    </message>
    <message>
        <source>Energy in kWh</source>
        <translation>Energie in kWh</translation>
    </message>
    <message>
        <source>Week from %1</source>
        <translation>Woche ab %1</translation>
    </message>
    <message>
        <source>%1 confirmed</source>
        <translation>%1 bestätigt</translation>
    </message>
    <message>
        <source>%1 lost</source>
        <translation>%1 verloren</translation>
    </message>
    <message>
        <source>%1 trained</source>
        <translation>%1 trainiert</translation>
    </message>
    <message>
        <source>Mon</source>
        <translation>Mo</translation>
    </message>
    <message>
        <source>Tue</source>
        <translation>Di</translation>
    </message>
    <message>
        <source>Wed</source>
        <translation>Mi</translation>
    </message>
    <message>
        <source>Thu</source>
        <translation>Do</translation>
    </message>
    <message>
        <source>Fri</source>
        <translation>Fr</translation>
    </message>
    <message>
        <source>Sat</source>
        <translation>Sa</translation>
    </message>
    <message>
        <source>Sun</source>
        <translation>So</translation>
    </message>
</context>
<context>
    <name>StatsPage</name>
    <message>
        <source>Stats</source>
        <translation>Statistik</translation>
    </message>
    <message>
        <source>Export …</source>
        <translation>Exportieren …</translation>
    </message>
    <message>
        <source>Projects</source>
        <translation>Projekte</translation>
    </message>
    <message>
        <source>Why samples were lost</source>
        <translation>Warum Beispiele verloren gingen</translation>
    </message>
    <message>
        <source>What the bars show</source>
        <translation>Was die Balken zeigen</translation>
    </message>
    <message>
        <source>Length of time of a bar</source>
        <translation>Zeitspanne eines Balkens</translation>
    </message>
    <message>
        <source>What was contributed over time</source>
        <translation>Was im Lauf der Zeit beigetragen wurde</translation>
    </message>
    <message>
        <source>Over time</source>
        <translation>Im Lauf der Zeit</translation>
    </message>
    <message>
        <source>Grey on top is what was lost. Point at a bar for its figures; click it for that day&apos;s timeline.</source>
        <translation>Grau oben ist, was verloren ging. Zeig auf einen Balken für seine Zahlen; ein Klick öffnet den Verlauf dieses Tages.</translation>
    </message>
    <message>
        <source>Nothing contributed yet</source>
        <translation>Noch nichts beigetragen</translation>
    </message>
    <message>
        <source>When you are in a project, this page shows what your computer contributed.</source>
        <translation>Wenn du in einem Projekt bist, zeigt diese Seite, was dein Computer beigetragen hat.</translation>
    </message>
    <message>
        <source>Choose a project</source>
        <translation>Projekt wählen</translation>
    </message>
    <message>
        <source>Export contributions</source>
        <translation>Beiträge exportieren</translation>
    </message>
    <message>
        <source>Tables (*.csv)</source>
        <translation>Tabellen (*.csv)</translation>
    </message>
</context>
<context>
    <name>TextDialog</name>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Save …</source>
        <translation>Sichern …</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>Kopiert.</translation>
    </message>
    <message>
        <source>Texts (*.txt)</source>
        <translation>Texte (*.txt)</translation>
    </message>
</context>
<context>
    <name>Tray</name>
    <message>
        <source>Pause</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Open skep</source>
        <translation>skep öffnen</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
</context>
<context>
    <name>UpdateWords</name>
    <message>
        <source>Later</source>
        <translation>Später</translation>
    </message>
    <message>
        <source>skep %1 can be installed.</source>
        <translation>skep %1 kann installiert werden.</translation>
    </message>
    <message>
        <source>Install</source>
        <translation>Installieren</translation>
    </message>
    <message>
        <source>Your system&apos;s software updates install it, as they did with this one.</source>
        <translation>Die Aktualisierung deines Systems installiert es, wie schon dieses.</translation>
    </message>
    <message>
        <source>skep %1 is there.</source>
        <translation>skep %1 ist da.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>skep %1 is installed.</source>
        <translation>skep %1 ist installiert.</translation>
    </message>
    <message>
        <source>It starts the next time you start skep. What you have contributed stays.</source>
        <translation>Es läuft, sobald du skep das nächste Mal startest. Was du beigetragen hast, bleibt.</translation>
    </message>
    <message>
        <source>Start it now</source>
        <translation>Jetzt starten</translation>
    </message>
    <message>
        <source>skep %1 is used again.</source>
        <translation>skep %1 wird wieder verwendet.</translation>
    </message>
    <message>
        <source>It starts the next time you start skep.</source>
        <translation>Es läuft, sobald du skep das nächste Mal startest.</translation>
    </message>
    <message>
        <source>skep %1 is the newest.</source>
        <translation>skep %1 ist das neueste.</translation>
    </message>
    <message>
        <source>Downloading skep %1</source>
        <translation>skep %1 wird geladen</translation>
    </message>
    <message>
        <source>Installing skep %1</source>
        <translation>skep %1 wird installiert</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Go back to skep %1</source>
        <translation>Zurück zu skep %1</translation>
    </message>
</context>
</TS>
