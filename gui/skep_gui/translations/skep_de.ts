<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE">
<context>
    <name>App</name>
    <message>
        <source>Leaving the swarm, then skep ends.</source>
        <translation>skep verlässt den Schwarm und wird dann beendet.</translation>
    </message>
    <message>
        <source>Joined %1.</source>
        <translation>%1 beigetreten.</translation>
    </message>
    <message>
        <source>This desktop shows no tray. skep goes on while its window is closed; start it again to see it.</source>
        <translation>Dieser Desktop zeigt keinen Infobereich. skep läuft weiter, wenn sein Fenster geschlossen ist; starte es noch einmal, um es zu sehen.</translation>
    </message>
    <message>
        <source>skep goes on in the tray.</source>
        <translation>skep läuft im Infobereich weiter.</translation>
    </message>
    <message>
        <source>Quit is in its menu.</source>
        <translation>„Beenden“ steht in seinem Menü.</translation>
    </message>
    <message>
        <source>Written to %1</source>
        <translation>Geschrieben nach %1</translation>
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
        <source>Setting</source>
        <translation>Einstellung</translation>
    </message>
    <message>
        <source>Setting of the rule: %1</source>
        <translation>Einstellung der Regel: %1</translation>
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
        <source>Quiet and cool, and never in your way.</source>
        <translation>Leise und kühl, und nie im Weg.</translation>
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
        <source>skep trains one project at a time. The practice swarm shows everything at once, on this computer alone.</source>
        <translation>skep trainiert immer nur ein Projekt. Der Übungsschwarm zeigt alles sofort, auf diesem Computer allein.</translation>
    </message>
    <message>
        <source>A project</source>
        <translation>Ein Projekt</translation>
    </message>
    <message>
        <source>Practice swarm</source>
        <translation>Übungsschwarm</translation>
    </message>
    <message>
        <source>A little model learns to write Python. Nothing leaves the machine.</source>
        <translation>Ein kleines Modell lernt, Python zu schreiben. Nichts verlässt diesen Computer.</translation>
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
    <name>Joining</name>
    <message>
        <source>Check this computer</source>
        <translation>Diesen Computer prüfen</translation>
    </message>
    <message>
        <source>Fetch training data</source>
        <translation>Trainingsdaten holen</translation>
    </message>
    <message>
        <source>Reach the swarm</source>
        <translation>Den Schwarm erreichen</translation>
    </message>
    <message>
        <source>Warm up</source>
        <translation>Aufwärmen</translation>
    </message>
    <message>
        <source>Load the model&apos;s state</source>
        <translation>Den Stand des Modells laden</translation>
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
    <name>LivePlot</name>
    <message>
        <source>Samples a second and share, over ten minutes</source>
        <translation>Beispiele je Sekunde und Anteil, über zehn Minuten</translation>
    </message>
    <message>
        <source>The first minutes of training draw this.</source>
        <translation>Die ersten Minuten des Trainings zeichnen dies.</translation>
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
    <name>MainWindow</name>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
    <message>
        <source>Projects</source>
        <translation>Projekte</translation>
    </message>
    <message>
        <source>Stats</source>
        <translation>Statistik</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
</context>
<context>
    <name>Now</name>
    <message>
        <source>Joining %1.</source>
        <translation>Beitritt zu %1.</translation>
    </message>
    <message>
        <source>Paused until you resume.</source>
        <translation>Pausiert, bis du fortsetzt.</translation>
    </message>
    <message>
        <source>Paused until %1.</source>
        <translation>Pausiert bis %1.</translation>
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
        <source>Trying again.</source>
        <translation>Neuer Versuch.</translation>
    </message>
    <message>
        <source>Trying again in %1.</source>
        <translation>Neuer Versuch in %1.</translation>
    </message>
    <message>
        <source>Leaving the swarm.</source>
        <translation>skep verlässt den Schwarm.</translation>
    </message>
    <message>
        <source>Leaving after the next round, in %1 at most.</source>
        <translation>skep geht nach der nächsten Runde, in höchstens %1.</translation>
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
        <source>Samples of this stay that were really averaged with another peer&apos;s. Pending ones wait for the round at the end of the epoch.</source>
        <translation>Beispiele dieses Aufenthalts, die wirklich mit denen eines anderen Peers gemittelt wurden. Ausstehende warten auf die Runde am Ende der Epoche.</translation>
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
        <source>direct</source>
        <translation>direkt</translation>
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
        <source>Choose a project</source>
        <translation>Projekt wählen</translation>
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
        <source>Five steps</source>
        <translation>Fünf Schritte</translation>
    </message>
    <message>
        <source>Compute share %1</source>
        <translation>Rechenanteil %1</translation>
    </message>
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
    <name>Pauses</name>
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
        <source>It uses at most</source>
        <translation>Es nutzt höchstens</translation>
    </message>
    <message>
        <source>Who and what</source>
        <translation>Wer und was</translation>
    </message>
    <message>
        <source>Leave the other project first; one at a time.</source>
        <translation>Verlasse zuerst das andere Projekt; es geht immer nur eines.</translation>
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
        <source>Open the setting</source>
        <translation>Einstellung öffnen</translation>
    </message>
    <message>
        <source>Diagnose …</source>
        <translation>Diagnose öffnen …</translation>
    </message>
    <message>
        <source>skep met an error of its own</source>
        <translation>skep ist auf einen eigenen Fehler gestoßen</translation>
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
        <source>Practice swarm</source>
        <translation>Übungsschwarm</translation>
    </message>
    <message>
        <source>A small swarm on this computer, to see how everything works. A little model learns to write Python. Nothing leaves the machine.</source>
        <translation>Ein kleiner Schwarm auf diesem Computer, um zu sehen, wie alles geht. Ein kleines Modell lernt, Python zu schreiben. Nichts verlässt diesen Computer.</translation>
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
        <source>Fits gently</source>
        <translation>Passt gerade so</translation>
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
        <source>Training data listed at %1</source>
        <translation>Trainingsdaten, aufgelistet unter %1</translation>
    </message>
    <message>
        <source>%1 from %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>The model as the swarm has trained it so far, from other peers</source>
        <translation>Das Modell, wie der Schwarm es bisher trainiert hat, von anderen Peers</translation>
    </message>
    <message>
        <source>About %1 up and %2 down an hour, in a swarm of %3 computers like this one; never more than %4 each way</source>
        <translation>Etwa %1 hinauf und %2 herunter je Stunde, in einem Schwarm aus %3 Computern wie diesem; nie mehr als %4 in jede Richtung</translation>
    </message>
    <message>
        <source>What training found, up to %1 each epoch</source>
        <translation>Was das Training ergab, bis zu %1 je Epoche</translation>
    </message>
    <message>
        <source>Copies of the model, when another peer asks for one</source>
        <translation>Kopien des Modells, wenn ein anderer Peer darum bittet</translation>
    </message>
    <message>
        <source>The other peers see this computer&apos;s network address</source>
        <translation>Die anderen Peers sehen die Netzadresse dieses Computers</translation>
    </message>
    <message>
        <source>Never your files, and nothing you type</source>
        <translation>Niemals deine Dateien, und nichts, was du tippst</translation>
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
        <source>And never more than your own limits in the settings</source>
        <translation>Und nie mehr als deine eigenen Grenzen in den Einstellungen</translation>
    </message>
    <message>
        <source>everybody</source>
        <translation>alle</translation>
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
        <source>Some projects invite their computers one by one. Send the publisher this computer&apos;s identity; what comes back is accepted here.</source>
        <translation>Manche Projekte laden ihre Computer einzeln ein. Schick dem Herausgeber die Kennung dieses Computers; was zurückkommt, nimmst du hier an.</translation>
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
        <source>Tick what you want to imagine.</source>
        <translation>Kreuze an, was du dir vorstellen willst.</translation>
    </message>
    <message>
        <source>%1 skep leaves the swarm meanwhile.</source>
        <translation>%1 skep verlässt den Schwarm solange.</translation>
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
        <source>Begin with the defaults</source>
        <translation>Mit den Vorgaben anfangen</translation>
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
        <source>Samples that were really averaged with another peer&apos;s, and that the model learned from.</source>
        <translation>Beispiele, die wirklich mit denen eines anderen Peers gemittelt wurden und aus denen das Modell gelernt hat.</translation>
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
        <source>The device does not tell its power.</source>
        <translation>Das Gerät sagt nicht, wie viel Strom es braucht.</translation>
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
        <source>Samples that reached nobody, with the reason below.</source>
        <translation>Beispiele, die niemanden erreicht haben; der Grund steht unten.</translation>
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
        <source>Once you are in a project, this page shows what your computer gave and what became of it.</source>
        <translation>Sobald du in einem Projekt bist, zeigt diese Seite, was dein Computer gab und was daraus wurde.</translation>
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
    <name>Trouble</name>
    <message>
        <source>Report of an error</source>
        <translation>Bericht über einen Fehler</translation>
    </message>
    <message>
        <source>Nothing of this is sent anywhere. Copy it to tell us.</source>
        <translation>Nichts davon wird irgendwohin gesendet. Kopiere ihn, um uns davon zu erzählen.</translation>
    </message>
    <message>
        <source>Diagnostics</source>
        <translation>Diagnose</translation>
    </message>
    <message>
        <source>What somebody who helps you needs to know. Addresses, keys and your name are masked; nothing is sent anywhere. Read it before you pass it on.</source>
        <translation>Was jemand wissen muss, der dir hilft. Adressen, Schlüssel und dein Name sind unkenntlich; nichts wird gesendet. Lies es, bevor du es weitergibst.</translation>
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
<context>
    <name>core</name>
    <message>
        <source>&quot;%1&quot; comes with a later version of skep</source>
        <translation>„%1“ kommt mit einer späteren Version von skep</translation>
    </message>
    <message>
        <source>&quot;%1&quot; is not the name of a device.</source>
        <translation>„%1“ ist nicht der Name eines Geräts.</translation>
    </message>
    <message>
        <source>%1 appears twice</source>
        <translation>%1 kommt zweimal vor</translation>
    </message>
    <message>
        <source>%1 cannot be locked: %2.</source>
        <translation>%1 kann nicht gesperrt werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be read: %2.</source>
        <translation>%1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be skep&apos;s folder, since there is a file in its way.</source>
        <translation>%1 kann nicht skeps Ordner sein, weil dort eine Datei im Weg ist.</translation>
    </message>
    <message>
        <source>%1 cannot be written there: %2.</source>
        <translation>%1 kann dort nicht geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2.</source>
        <translation>%1 kann nicht geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>%1 cannot tell: %2.</source>
        <translation>%1 kann es nicht sagen: %2.</translation>
    </message>
    <message>
        <source>%1 computes in bf16, which %2 cannot.</source>
        <translation>%1 rechnet in bf16, was %2 nicht kann.</translation>
    </message>
    <message>
        <source>%1 does not answer.</source>
        <translation>%1 antwortet nicht.</translation>
    </message>
    <message>
        <source>%1 does not answer: %2.</source>
        <translation>%1 antwortet nicht: %2.</translation>
    </message>
    <message>
        <source>%1 does not fit into the memory of %2.</source>
        <translation>%1 passt nicht in den Speicher von %2.</translation>
    </message>
    <message>
        <source>%1 does not start (%2)</source>
        <translation>%1 startet nicht (%2)</translation>
    </message>
    <message>
        <source>%1 from %2 to %3</source>
        <translation>%1 von %2 bis %3</translation>
    </message>
    <message>
        <source>%1 from %2 to %3, or 0 for %4</source>
        <translation>%1 von %2 bis %3, oder 0 für %4</translation>
    </message>
    <message>
        <source>%1 has ended.</source>
        <translation>%1 wurde beendet.</translation>
    </message>
    <message>
        <source>%1 has values that are not finite</source>
        <translation>%1 hat Werte, die nicht endlich sind</translation>
    </message>
    <message>
        <source>%1 is %2 where %3 is expected</source>
        <translation>%1 ist %2, wo %3 erwartet wird</translation>
    </message>
    <message>
        <source>%1 is %2 where the model has %3</source>
        <translation>%1 ist %2, wo das Modell %3 hat</translation>
    </message>
    <message>
        <source>%1 is %2, not one of %3</source>
        <translation>%1 ist %2, keines von %3</translation>
    </message>
    <message>
        <source>%1 is for invited computers, and this one has no invitation to it.</source>
        <translation>%1 ist für eingeladene Computer, und dieser hat keine Einladung dazu.</translation>
    </message>
    <message>
        <source>%1 is larger than %2 KiB, which no manifest is.</source>
        <translation>%1 ist größer als %2 KiB; das ist kein Manifest.</translation>
    </message>
    <message>
        <source>%1 is missing</source>
        <translation>%1 fehlt</translation>
    </message>
    <message>
        <source>%1 is not a key made by `skep key new`.</source>
        <translation>%1 ist kein Schlüssel, den `skep key new` gemacht hat.</translation>
    </message>
    <message>
        <source>%1 is not a list</source>
        <translation>%1 ist keine Liste</translation>
    </message>
    <message>
        <source>%1 is not a number</source>
        <translation>%1 ist keine Zahl</translation>
    </message>
    <message>
        <source>%1 is not a tensor of this model</source>
        <translation>%1 ist kein Tensor dieses Modells</translation>
    </message>
    <message>
        <source>%1 is not a whole number</source>
        <translation>%1 ist keine ganze Zahl</translation>
    </message>
    <message>
        <source>%1 is not a whole number above 0</source>
        <translation>%1 ist keine ganze Zahl über 0</translation>
    </message>
    <message>
        <source>%1 is not an object</source>
        <translation>%1 ist kein Objekt</translation>
    </message>
    <message>
        <source>%1 is not between 1 and %2</source>
        <translation>%1 liegt nicht zwischen 1 und %2</translation>
    </message>
    <message>
        <source>%1 is not valid: %2.</source>
        <translation>%1 ist nicht gültig: %2.</translation>
    </message>
    <message>
        <source>%1 is open to everybody, so nobody needs an invitation.</source>
        <translation>%1 ist für alle offen, also braucht niemand eine Einladung.</translation>
    </message>
    <message>
        <source>%1 must be %2.</source>
        <translation>%1 muss so sein: %2.</translation>
    </message>
    <message>
        <source>%1 must be a group of settings, as in [%2].</source>
        <translation>%1 muss eine Gruppe von Einstellungen sein, wie in [%2].</translation>
    </message>
    <message>
        <source>%1 refuses to answer (%2).</source>
        <translation>%1 verweigert die Antwort (%2).</translation>
    </message>
    <message>
        <source>%1 says that the last input was %2 s ago, which cannot be.</source>
        <translation>%1 sagt, die letzte Eingabe sei %2 s her, was nicht sein kann.</translation>
    </message>
    <message>
        <source>%1 says that the last input was %2 s ago, which is too long.</source>
        <translation>%1 sagt, die letzte Eingabe sei %2 s her, was zu lang ist.</translation>
    </message>
    <message>
        <source>%1 stopped working.</source>
        <translation>%1 arbeitet nicht mehr.</translation>
    </message>
    <message>
        <source>%1 to be safe.</source>
        <translation>%1 zur Sicherheit.</translation>
    </message>
    <message>
        <source>%1 took longer than %2 s</source>
        <translation>%1 dauerte länger als %2 s</translation>
    </message>
    <message>
        <source>%1 until %2</source>
        <translation>%1 bis %2</translation>
    </message>
    <message>
        <source>%1 until it answers again.</source>
        <translation>%1, bis sie wieder antwortet.</translation>
    </message>
    <message>
        <source>%1 while you use this computer.</source>
        <translation>%1, während du diesen Computer nutzt.</translation>
    </message>
    <message>
        <source>%1%2 is missing</source>
        <translation>%1%2 fehlt</translation>
    </message>
    <message>
        <source>%1%2 is not a known field</source>
        <translation>%1%2 ist kein bekanntes Feld</translation>
    </message>
    <message>
        <source>%1, line %2</source>
        <translation>%1, Zeile %2</translation>
    </message>
    <message>
        <source>%1, or 0 for %2</source>
        <translation>%1, oder 0 für %2</translation>
    </message>
    <message>
        <source>%1, or empty for %2</source>
        <translation>%1, oder leer für %2</translation>
    </message>
    <message>
        <source>%1.bytes does not fit its samples</source>
        <translation>%1.bytes passt nicht zu seinen Beispielen</translation>
    </message>
    <message>
        <source>%1.sha256 is not 64 lower-case hex digits</source>
        <translation>%1.sha256 sind nicht 64 kleine Hex-Ziffern</translation>
    </message>
    <message>
        <source>(process %1)</source>
        <translation>(Prozess %1)</translation>
    </message>
    <message>
        <source>, back at %1</source>
        <translation>, zurück um %1</translation>
    </message>
    <message>
        <source>, since a peer may take a good part of a second to answer</source>
        <translation>, weil ein Peer gut einen Teil einer Sekunde zum Antworten brauchen kann</translation>
    </message>
    <message>
        <source>3 to 40 lower-case letters, digits and dashes</source>
        <translation>3 bis 40 Kleinbuchstaben, Ziffern und Bindestriche</translation>
    </message>
    <message>
        <source>64 bytes in base64</source>
        <translation>64 Bytes in Base64</translation>
    </message>
    <message>
        <source>A call or film is running.</source>
        <translation>Ein Anruf oder Film läuft.</translation>
    </message>
    <message>
        <source>A call or film was running a moment ago.</source>
        <translation>Eben lief noch ein Anruf oder Film.</translation>
    </message>
    <message>
        <source>A data address of this project is not a web address.</source>
        <translation>Eine Datenadresse dieses Projekts ist keine Webadresse.</translation>
    </message>
    <message>
        <source>A full-screen program is open.</source>
        <translation>Ein Vollbildprogramm ist offen.</translation>
    </message>
    <message>
        <source>A full-screen program was open a moment ago.</source>
        <translation>Eben war noch ein Vollbildprogramm offen.</translation>
    </message>
    <message>
        <source>A part of skep that averages with others did not start.</source>
        <translation>Ein Teil von skep, der mit anderen mittelt, ist nicht gestartet.</translation>
    </message>
    <message>
        <source>A pause leaves the swarm after %1 min, before it frees GPU memory after %2 s: leaving frees it too.</source>
        <translation>Eine Pause verlässt den Schwarm nach %1 min, bevor sie nach %2 s GPU-Speicher freigibt: Das Verlassen gibt ihn auch frei.</translation>
    </message>
    <message>
        <source>A peer sent a state of %1 tensors where this model has %2.</source>
        <translation>Ein Peer schickte einen Stand mit %1 Tensoren, wo dieses Modell %2 hat.</translation>
    </message>
    <message>
        <source>A peer sent a state with values that are not finite.</source>
        <translation>Ein Peer schickte einen Stand mit Werten, die nicht endlich sind.</translation>
    </message>
    <message>
        <source>A peer sent a training state without an epoch.</source>
        <translation>Ein Peer schickte einen Trainingsstand ohne Epoche.</translation>
    </message>
    <message>
        <source>A peer sent tensor %1 of its state as %2 %3, this model has %4 %5.</source>
        <translation>Ein Peer schickte Tensor %1 seines Stands als %2 %3, dieses Modell hat %4 %5.</translation>
    </message>
    <message>
        <source>A secret in %1 cannot be %2: %3.</source>
        <translation>Ein Geheimnis in %1 kann nicht %2 werden: %3.</translation>
    </message>
    <message>
        <source>A small model on this computer that learns to write Python. Nothing leaves the machine.</source>
        <translation>Ein kleines Modell auf diesem Computer, das Python schreiben lernt. Nichts verlässt diesen Computer.</translation>
    </message>
    <message>
        <source>A source of readings does not answer.</source>
        <translation>Eine Quelle von Messwerten antwortet nicht.</translation>
    </message>
    <message>
        <source>A training process is running already.</source>
        <translation>Ein Trainingsprozess läuft schon.</translation>
    </message>
    <message>
        <source>AMD graphics</source>
        <translation>AMD-Grafik</translation>
    </message>
    <message>
        <source>AMD graphics card at %1</source>
        <translation>AMD-Grafikkarte an %1</translation>
    </message>
    <message>
        <source>AMD&apos;s driver</source>
        <translation>AMDs Treiber</translation>
    </message>
    <message>
        <source>Add it again with --consent if that is fine.</source>
        <translation>Füge es mit --consent noch einmal hinzu, wenn das in Ordnung ist.</translation>
    </message>
    <message>
        <source>Add the project first.</source>
        <translation>Füge zuerst das Projekt hinzu.</translation>
    </message>
    <message>
        <source>An epoch of this project %1 %2, and finding peers up to %3 s: computers that join or come back may need several epochs until they average with others.</source>
        <translation>Eine Epoche dieses Projekts %1 %2, und Peers zu finden bis zu %3 s: Computer, die beitreten oder zurückkommen, brauchen vielleicht mehrere Epochen, bis sie mit anderen mitteln.</translation>
    </message>
    <message>
        <source>An invitation lasts from 1 to %1 days.</source>
        <translation>Eine Einladung gilt 1 bis %1 Tage.</translation>
    </message>
    <message>
        <source>An update cannot be kept in %1: %2.</source>
        <translation>Ein Update kann nicht in %1 abgelegt werden: %2.</translation>
    </message>
    <message>
        <source>Another program is using the GPU.</source>
        <translation>Ein anderes Programm nutzt die GPU.</translation>
    </message>
    <message>
        <source>Another program was using the GPU a moment ago.</source>
        <translation>Eben nutzte noch ein anderes Programm die GPU.</translation>
    </message>
    <message>
        <source>App</source>
        <translation>App</translation>
    </message>
    <message>
        <source>Apple GPU</source>
        <translation>Apple-GPU</translation>
    </message>
    <message>
        <source>Apple chip</source>
        <translation>Apple-Chip</translation>
    </message>
    <message>
        <source>Apple graphics</source>
        <translation>Apple-Grafik</translation>
    </message>
    <message>
        <source>Ask its publisher for a newer one.</source>
        <translation>Bitte den Herausgeber um ein neueres.</translation>
    </message>
    <message>
        <source>Ask the project&apos;s publisher for a new invitation.</source>
        <translation>Bitte den Herausgeber des Projekts um eine neue Einladung.</translation>
    </message>
    <message>
        <source>Ask whoever gave you the link for it again; one looks like %1.</source>
        <translation>Bitte noch einmal um den Link, wo du ihn herhast; einer sieht so aus: %1.</translation>
    </message>
    <message>
        <source>Away</source>
        <translation>Abwesend</translation>
    </message>
    <message>
        <source>Away after</source>
        <translation>Abwesend nach</translation>
    </message>
    <message>
        <source>Battery</source>
        <translation>Akku</translation>
    </message>
    <message>
        <source>Battery, by UPower</source>
        <translation>Akku, laut UPower</translation>
    </message>
    <message>
        <source>Battery, by the operating system</source>
        <translation>Akku, laut Betriebssystem</translation>
    </message>
    <message>
        <source>Both may be of different versions.</source>
        <translation>Vielleicht sind beide von verschiedenen Versionen.</translation>
    </message>
    <message>
        <source>Busy GPU</source>
        <translation>Beschäftigte GPU</translation>
    </message>
    <message>
        <source>Busy processor</source>
        <translation>Beschäftigter Prozessor</translation>
    </message>
    <message>
        <source>Cache limit</source>
        <translation>Grenze des Zwischenspeichers</translation>
    </message>
    <message>
        <source>Call or film</source>
        <translation>Anruf oder Film</translation>
    </message>
    <message>
        <source>Calm time</source>
        <translation>Ruhezeit</translation>
    </message>
    <message>
        <source>Calm time of mains and network</source>
        <translation>Ruhezeit für Strom und Netz</translation>
    </message>
    <message>
        <source>Check for updates</source>
        <translation>Nach Updates sehen</translation>
    </message>
    <message>
        <source>Check its permissions.</source>
        <translation>Prüfe seine Rechte.</translation>
    </message>
    <message>
        <source>Check that its folder exists and that you may write to it.</source>
        <translation>Prüfe, ob sein Ordner da ist und ob du hineinschreiben darfst.</translation>
    </message>
    <message>
        <source>Check that the cache folder may be read.</source>
        <translation>Prüfe, ob der Ordner des Zwischenspeichers gelesen werden darf.</translation>
    </message>
    <message>
        <source>Check that this folder exists and that you may write to it.</source>
        <translation>Prüfe, ob dieser Ordner da ist und ob du hineinschreiben darfst.</translation>
    </message>
    <message>
        <source>Check the address and the internet connection, then try again.</source>
        <translation>Prüfe die Adresse und die Internetverbindung und versuche es dann noch einmal.</translation>
    </message>
    <message>
        <source>Check the address.</source>
        <translation>Prüfe die Adresse.</translation>
    </message>
    <message>
        <source>Check the disk and the space left on it. What was recorded before is kept.</source>
        <translation>Prüfe die Festplatte und den Platz darauf. Was vorher festgehalten wurde, bleibt.</translation>
    </message>
    <message>
        <source>Check the folder&apos;s permissions and the free disk space.</source>
        <translation>Prüfe die Rechte des Ordners und den freien Platz auf der Festplatte.</translation>
    </message>
    <message>
        <source>Check the folder&apos;s permissions.</source>
        <translation>Prüfe die Rechte des Ordners.</translation>
    </message>
    <message>
        <source>Check the folder.</source>
        <translation>Prüfe den Ordner.</translation>
    </message>
    <message>
        <source>Check the internet connection. If it works, the project&apos;s server may be down; try again later.</source>
        <translation>Prüfe die Internetverbindung. Geht sie, ist vielleicht der Server des Projekts aus; versuche es später noch einmal.</translation>
    </message>
    <message>
        <source>Check the path.</source>
        <translation>Prüfe den Pfad.</translation>
    </message>
    <message>
        <source>Check this computer&apos;s clock and network; a hotel or company network may be in between.</source>
        <translation>Prüfe Uhr und Netz dieses Computers; vielleicht ist ein Hotel- oder Firmennetz dazwischen.</translation>
    </message>
    <message>
        <source>Check this computer&apos;s clock, or wait until then.</source>
        <translation>Prüfe die Uhr dieses Computers, oder warte bis dahin.</translation>
    </message>
    <message>
        <source>Check this computer&apos;s internet connection or firewall, or try again later. Another address can be given in SKEP_PEERS.</source>
        <translation>Prüfe die Internetverbindung oder Firewall dieses Computers, oder versuche es später noch einmal. Eine andere Adresse lässt sich in SKEP_PEERS angeben.</translation>
    </message>
    <message>
        <source>Choose a home on a disk of this computer.</source>
        <translation>Wähle einen Ordner auf einer Festplatte dieses Computers.</translation>
    </message>
    <message>
        <source>Choose another folder with --home or SKEP_HOME.</source>
        <translation>Wähle mit --home oder SKEP_HOME einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another one with --home or SKEP_HOME, or make it writable for you.</source>
        <translation>Wähle mit --home oder SKEP_HOME einen anderen, oder mache ihn für dich schreibbar.</translation>
    </message>
    <message>
        <source>Choose another place with --out.</source>
        <translation>Wähle mit --out einen anderen Ort.</translation>
    </message>
    <message>
        <source>Choose another place.</source>
        <translation>Wähle einen anderen Ort.</translation>
    </message>
    <message>
        <source>Choose from %1.</source>
        <translation>Wähle aus %1.</translation>
    </message>
    <message>
        <source>Client mode</source>
        <translation>Nur ausgehend</translation>
    </message>
    <message>
        <source>Close other programs that use its memory, or pick a smaller project.</source>
        <translation>Schließe andere Programme, die seinen Speicher nutzen, oder nimm ein kleineres Projekt.</translation>
    </message>
    <message>
        <source>Close the program that has this file open, then try again.</source>
        <translation>Schließe das Programm, das diese Datei offen hat, und versuche es dann noch einmal.</translation>
    </message>
    <message>
        <source>Compute</source>
        <translation>Rechnen</translation>
    </message>
    <message>
        <source>Connection, by NetworkManager</source>
        <translation>Verbindung, laut NetworkManager</translation>
    </message>
    <message>
        <source>Copy this computer&apos;s identity below and send it to the publisher; accept the invitation that comes back.</source>
        <translation>Kopiere unten die Kennung dieses Computers und schicke sie dem Herausgeber; nimm die Einladung an, die zurückkommt.</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Did you mean %1?</source>
        <translation>Meintest du %1?</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>Festplatte</translation>
    </message>
    <message>
        <source>Do not trust it, unless the publisher told you of a new key; then remove the project first.</source>
        <translation>Vertraue ihm nicht, außer der Herausgeber hat dir von einem neuen Schlüssel erzählt; entferne dann zuerst das Projekt.</translation>
    </message>
    <message>
        <source>Foreground window</source>
        <translation>Fenster im Vordergrund</translation>
    </message>
    <message>
        <source>Free GPU memory after</source>
        <translation>GPU-Speicher freigeben nach</translation>
    </message>
    <message>
        <source>Free some space in the temporary folder.</source>
        <translation>Schaffe etwas Platz im Ordner für temporäre Dateien.</translation>
    </message>
    <message>
        <source>Free some space on this disk, or lower the setting disk.keep_free_gb.</source>
        <translation>Schaffe etwas Platz auf dieser Festplatte, oder verringere die Einstellung disk.keep_free_gb.</translation>
    </message>
    <message>
        <source>Free some space on this disk, or make the folder writable for you.</source>
        <translation>Schaffe etwas Platz auf dieser Festplatte, oder mache den Ordner für dich schreibbar.</translation>
    </message>
    <message>
        <source>Free some space on this disk. What was downloaded so far is kept.</source>
        <translation>Schaffe etwas Platz auf dieser Festplatte. Was bisher heruntergeladen wurde, bleibt.</translation>
    </message>
    <message>
        <source>Free some space on this disk. What was recorded before is kept.</source>
        <translation>Schaffe etwas Platz auf dieser Festplatte. Was vorher festgehalten wurde, bleibt.</translation>
    </message>
    <message>
        <source>Free some space, or check the folder&apos;s permissions.</source>
        <translation>Schaffe etwas Platz, oder prüfe die Rechte des Ordners.</translation>
    </message>
    <message>
        <source>Friday</source>
        <translation>Freitag</translation>
    </message>
    <message>
        <source>Full-screen program</source>
        <translation>Vollbildprogramm</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>Die GPU</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>GPU-Speicher</translation>
    </message>
    <message>
        <source>Gave your computer back in %1 s (last %2).</source>
        <translation>Dein Computer war in %1 s wieder frei (die letzten %2 Male).</translation>
    </message>
    <message>
        <source>Get both files again from the project&apos;s publisher.</source>
        <translation>Hol dir beide Dateien noch einmal vom Herausgeber des Projekts.</translation>
    </message>
    <message>
        <source>Get both files from the project&apos;s publisher.</source>
        <translation>Hol dir beide Dateien vom Herausgeber des Projekts.</translation>
    </message>
    <message>
        <source>Get the newest one from the project&apos;s publisher.</source>
        <translation>Hol dir das neueste vom Herausgeber des Projekts.</translation>
    </message>
    <message>
        <source>Give --days a number of those.</source>
        <translation>Gib --days eine Zahl aus diesen.</translation>
    </message>
    <message>
        <source>Going up gently to %1.</source>
        <translation>Steigt sanft auf %1.</translation>
    </message>
    <message>
        <source>Heat and power</source>
        <translation>Wärme und Strom</translation>
    </message>
    <message>
        <source>How long a pause lasts until the model leaves the GPU&apos;s memory.</source>
        <translation>Wie lange eine Pause dauert, bis das Modell den Speicher der GPU räumt.</translation>
    </message>
    <message>
        <source>How long a pause lasts until this computer leaves the swarm.</source>
        <translation>Wie lange eine Pause dauert, bis dieser Computer den Schwarm verlässt.</translation>
    </message>
    <message>
        <source>How long other programs must have been quiet before computing goes on.</source>
        <translation>Wie lange andere Programme ruhig gewesen sein müssen, bevor weitergerechnet wird.</translation>
    </message>
    <message>
        <source>How long the share takes to rise again.</source>
        <translation>Wie lange der Anteil braucht, um wieder zu steigen.</translation>
    </message>
    <message>
        <source>How long this computer must have been on mains, or off a metered connection, before computing goes on.</source>
        <translation>Wie lange dieser Computer am Netz hängen oder keine getaktete Verbindung haben muss, bevor weitergerechnet wird.</translation>
    </message>
    <message>
        <source>How long without any input until nobody counts as using this computer.</source>
        <translation>Wie lange ohne jede Eingabe, bis niemand mehr als Nutzer dieses Computers gilt.</translation>
    </message>
    <message>
        <source>How many processor threads the training may use; automatic takes fewer while you use this computer.</source>
        <translation>Wie viele Threads des Prozessors das Training nutzen darf; „automatisch“ nimmt weniger, während du diesen Computer nutzt.</translation>
    </message>
    <message>
        <source>How much disk the downloaded training data may take.</source>
        <translation>Wie viel Festplatte die heruntergeladenen Trainingsdaten belegen dürfen.</translation>
    </message>
    <message>
        <source>How much of the disk downloads always leave free.</source>
        <translation>Wie viel der Festplatte Downloads immer frei lassen.</translation>
    </message>
    <message>
        <source>How much of the time the device computes while nobody uses this computer.</source>
        <translation>Wie viel der Zeit das Gerät rechnet, während niemand diesen Computer nutzt.</translation>
    </message>
    <message>
        <source>How much of the time the device computes while somebody uses this computer; 0 pauses.</source>
        <translation>Wie viel der Zeit das Gerät rechnet, während jemand diesen Computer nutzt; 0 pausiert.</translation>
    </message>
    <message>
        <source>Idle inhibitors</source>
        <translation>Was den Bildschirm wach hält</translation>
    </message>
    <message>
        <source>If this computer&apos;s clock is right, it will be mended there.</source>
        <translation>Wenn die Uhr dieses Computers stimmt, wird es dort behoben.</translation>
    </message>
    <message>
        <source>If this happens again, please report it with the worker&apos;s log.</source>
        <translation>Wenn das noch einmal geschieht, melde es bitte mit dem Protokoll des Trainingsprozesses.</translation>
    </message>
    <message>
        <source>Install skep again.</source>
        <translation>Installiere skep noch einmal.</translation>
    </message>
    <message>
        <source>Install that version, or a later one.</source>
        <translation>Installiere diese Version oder eine spätere.</translation>
    </message>
    <message>
        <source>Install the new version the way this one was installed.</source>
        <translation>Installiere die neue Version so, wie diese installiert wurde.</translation>
    </message>
    <message>
        <source>Is this the home of another user?</source>
        <translation>Ist das der Ordner eines anderen Nutzers?</translation>
    </message>
    <message>
        <source>It could not be examined: %1.</source>
        <translation>Es konnte nicht untersucht werden: %1.</translation>
    </message>
    <message>
        <source>It holds until skep ends. Free some space on this disk, or make the folder writable for you.</source>
        <translation>Sie gilt, bis skep endet. Schaffe etwas Platz auf dieser Festplatte, oder mache den Ordner für dich schreibbar.</translation>
    </message>
    <message>
        <source>It is %1 unless set.</source>
        <translation>Ohne Angabe ist es %1.</translation>
    </message>
    <message>
        <source>It is set aside for a virtual machine.</source>
        <translation>Sie ist für eine virtuelle Maschine zurückgelegt.</translation>
    </message>
    <message>
        <source>It is tried again later; what was downloaded is kept.</source>
        <translation>Es wird später noch einmal versucht; was heruntergeladen wurde, bleibt.</translation>
    </message>
    <message>
        <source>It may have been restarted under another identity: look for a newer manifest, or try again later.</source>
        <translation>Vielleicht wurde er mit anderer Kennung neu gestartet: Sieh nach einem neueren Manifest, oder versuche es später noch einmal.</translation>
    </message>
    <message>
        <source>It must be a tokenizer.json.</source>
        <translation>Es muss eine tokenizer.json sein.</translation>
    </message>
    <message>
        <source>It needs %1 %2, and you have %3.</source>
        <translation>Es braucht %1 %2, und du hast %3.</translation>
    </message>
    <message>
        <source>It runs on the nouveau driver, which cannot train. Install the NVIDIA driver.</source>
        <translation>Sie läuft mit dem Treiber nouveau, der nicht trainieren kann. Installiere den NVIDIA-Treiber.</translation>
    </message>
    <message>
        <source>It runs on the old radeon driver, which cannot train.</source>
        <translation>Sie läuft mit dem alten Treiber radeon, der nicht trainieren kann.</translation>
    </message>
    <message>
        <source>It trains another model under the same name; tell the project&apos;s publisher.</source>
        <translation>Er trainiert ein anderes Modell unter demselben Namen; sag es dem Herausgeber des Projekts.</translation>
    </message>
    <message>
        <source>It was cancelled.</source>
        <translation>Er wurde abgebrochen.</translation>
    </message>
    <message>
        <source>Its driver offers no computing: /dev/kfd is missing. Install AMD&apos;s ROCm driver.</source>
        <translation>Ihr Treiber bietet kein Rechnen an: /dev/kfd fehlt. Installiere AMDs ROCm-Treiber.</translation>
    </message>
    <message>
        <source>Its log has the details; skep starts it again.</source>
        <translation>Sein Protokoll hat die Einzelheiten; skep startet ihn neu.</translation>
    </message>
    <message>
        <source>Join again in a moment.</source>
        <translation>Tritt gleich noch einmal bei.</translation>
    </message>
    <message>
        <source>Join the project again.</source>
        <translation>Tritt dem Projekt noch einmal bei.</translation>
    </message>
    <message>
        <source>Keep free</source>
        <translation>Frei lassen</translation>
    </message>
    <message>
        <source>Keep it, or choose another place with --out.</source>
        <translation>Behalte ihn, oder wähle mit --out einen anderen Ort.</translation>
    </message>
    <message>
        <source>Keeping the %1 under %2 °C.</source>
        <translation>%1 bleibt unter %2 °C.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Leave free in RAM</source>
        <translation>Im Arbeitsspeicher frei lassen</translation>
    </message>
    <message>
        <source>Leave free on the GPU</source>
        <translation>Auf der GPU frei lassen</translation>
    </message>
    <message>
        <source>Leave it first; one project at a time.</source>
        <translation>Verlasse es zuerst; es geht immer nur ein Projekt.</translation>
    </message>
    <message>
        <source>Leave on metered connections</source>
        <translation>Bei getakteter Verbindung verlassen</translation>
    </message>
    <message>
        <source>Leave the project first.</source>
        <translation>Verlasse zuerst das Projekt.</translation>
    </message>
    <message>
        <source>Leave the swarm after</source>
        <translation>Den Schwarm verlassen nach</translation>
    </message>
    <message>
        <source>Leave the swarm while the connection is metered.</source>
        <translation>Den Schwarm verlassen, solange die Verbindung getaktet ist.</translation>
    </message>
    <message>
        <source>Less than %1 GB of this computer&apos;s memory are left for your programs.</source>
        <translation>Weniger als %1 GB Arbeitsspeicher dieses Computers bleiben für deine Programme.</translation>
    </message>
    <message>
        <source>Look for a new version of skep when it starts and once a day. Nothing is installed without you.</source>
        <translation>Beim Start und einmal am Tag nach einer neuen Version von skep suchen. Ohne dich wird nichts installiert.</translation>
    </message>
    <message>
        <source>Make it readable for you.</source>
        <translation>Mache sie für dich lesbar.</translation>
    </message>
    <message>
        <source>Make room, or lower the setting disk.keep_free_gb.</source>
        <translation>Schaffe Platz, oder verringere die Einstellung disk.keep_free_gb.</translation>
    </message>
    <message>
        <source>Make the file and its folder writable for you.</source>
        <translation>Mache die Datei und ihren Ordner für dich schreibbar.</translation>
    </message>
    <message>
        <source>Make the file readable for you, or remove it.</source>
        <translation>Mache die Datei für dich lesbar, oder entferne sie.</translation>
    </message>
    <message>
        <source>Make the folder writable for you.</source>
        <translation>Mache den Ordner für dich schreibbar.</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Memory that other programs always find free in this computer.</source>
        <translation>Speicher, den andere Programme in diesem Computer immer frei finden.</translation>
    </message>
    <message>
        <source>Memory that other programs always find free on the GPU.</source>
        <translation>Speicher, den andere Programme auf der GPU immer frei finden.</translation>
    </message>
    <message>
        <source>Mend that in a text editor, or move the file away to begin with the defaults.</source>
        <translation>Bring das in einem Texteditor in Ordnung, oder verschiebe die Datei, um mit den Vorgaben zu beginnen.</translation>
    </message>
    <message>
        <source>Metered connection</source>
        <translation>Getaktete Verbindung</translation>
    </message>
    <message>
        <source>Monday</source>
        <translation>Montag</translation>
    </message>
    <message>
        <source>Mutter idle monitor</source>
        <translation>Leerlaufmelder von Mutter</translation>
    </message>
    <message>
        <source>NVIDIA graphics</source>
        <translation>NVIDIA-Grafik</translation>
    </message>
    <message>
        <source>NVIDIA graphics card</source>
        <translation>NVIDIA-Grafikkarte</translation>
    </message>
    <message>
        <source>NVIDIA graphics card at %1</source>
        <translation>NVIDIA-Grafikkarte an %1</translation>
    </message>
    <message>
        <source>NVIDIA&apos;s driver</source>
        <translation>NVIDIAs Treiber</translation>
    </message>
    <message>
        <source>NVIDIA&apos;s driver library reports: %1.</source>
        <translation>NVIDIAs Treiberbibliothek meldet: %1.</translation>
    </message>
    <message>
        <source>NVIDIA&apos;s driver, by process</source>
        <translation>NVIDIAs Treiber, je Prozess</translation>
    </message>
    <message>
        <source>Name one by its id: %1.</source>
        <translation>Nenne eines mit seiner Kennung: %1.</translation>
    </message>
    <message>
        <source>Name the key that signs the manifest with --key.</source>
        <translation>Nenne mit --key den Schlüssel, der das Manifest signiert.</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>NetworkManager does not know whether this connection is metered.</source>
        <translation>NetworkManager weiß nicht, ob diese Verbindung getaktet ist.</translation>
    </message>
    <message>
        <source>NetworkManager&apos;s guess</source>
        <translation>Vermutung von NetworkManager</translation>
    </message>
    <message>
        <source>No NVIDIA driver is installed.</source>
        <translation>Kein NVIDIA-Treiber ist installiert.</translation>
    </message>
    <message>
        <source>No X server tells when it was last used: %1.</source>
        <translation>Kein X-Server sagt, wann er zuletzt genutzt wurde: %1.</translation>
    </message>
    <message>
        <source>No X server: %1.</source>
        <translation>Kein X-Server: %1.</translation>
    </message>
    <message>
        <source>No driver is loaded for it.</source>
        <translation>Für sie ist kein Treiber geladen.</translation>
    </message>
    <message>
        <source>No folder for sockets can be made (%1).</source>
        <translation>Kein Ordner für Sockets lässt sich anlegen (%1).</translation>
    </message>
    <message>
        <source>No login manager here knows when the session became idle.</source>
        <translation>Keine Anmeldeverwaltung hier weiß, seit wann die Sitzung ruht.</translation>
    </message>
    <message>
        <source>No peer of the swarm hands over its training state.</source>
        <translation>Kein Peer des Schwarms gibt seinen Trainingsstand heraus.</translation>
    </message>
    <message>
        <source>No screen locker here tells whether it is active.</source>
        <translation>Keine Bildschirmsperre hier sagt, ob sie aktiv ist.</translation>
    </message>
    <message>
        <source>No screen saver here tells how long the session is idle.</source>
        <translation>Kein Bildschirmschoner hier sagt, wie lange die Sitzung ruht.</translation>
    </message>
    <message>
        <source>No skep is running in %1.</source>
        <translation>In %1 läuft kein skep.</translation>
    </message>
    <message>
        <source>Nobody is logged in at the screen.</source>
        <translation>Am Bildschirm ist niemand angemeldet.</translation>
    </message>
    <message>
        <source>None of the project&apos;s seed peers answers: %1.</source>
        <translation>Keiner der Startpeers des Projekts antwortet: %1.</translation>
    </message>
    <message>
        <source>Not even one sample finds room in the memory of %1 now.</source>
        <translation>Nicht einmal ein Beispiel findet jetzt Platz im Speicher von %1.</translation>
    </message>
    <message>
        <source>Not even one sample of %1 fits into the memory of %2.</source>
        <translation>Nicht einmal ein Beispiel von %1 passt in den Speicher von %2.</translation>
    </message>
    <message>
        <source>Not in a project.</source>
        <translation>In keinem Projekt.</translation>
    </message>
    <message>
        <source>Nothing can be written in %1.</source>
        <translation>In %1 kann nichts geschrieben werden.</translation>
    </message>
    <message>
        <source>Nothing here says %1.</source>
        <translation>Nichts hier sagt, %1.</translation>
    </message>
    <message>
        <source>Nothing here tells whether a program keeps the screen from going dark.</source>
        <translation>Nichts hier sagt, ob ein Programm den Bildschirm vom Dunkelwerden abhält.</translation>
    </message>
    <message>
        <source>Nothing of it was kept; ask whoever gave you the link.</source>
        <translation>Nichts davon wurde behalten; frage, wer dir den Link gab.</translation>
    </message>
    <message>
        <source>Nothing was changed. Keep a copy of this file; with it moved away, skep begins a new ledger.</source>
        <translation>Nichts wurde geändert. Behalte eine Kopie dieser Datei; ist sie verschoben, beginnt skep ein neues Kontobuch.</translation>
    </message>
    <message>
        <source>Nothing was downloaded. Choose a smaller project.</source>
        <translation>Nichts wurde heruntergeladen. Wähle ein kleineres Projekt.</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>Benachrichtigungen</translation>
    </message>
    <message>
        <source>On a metered connection a moment ago.</source>
        <translation>Eben noch eine getaktete Verbindung.</translation>
    </message>
    <message>
        <source>On a metered connection.</source>
        <translation>Die Verbindung ist getaktet.</translation>
    </message>
    <message>
        <source>On battery a moment ago.</source>
        <translation>Eben noch im Akkubetrieb.</translation>
    </message>
    <message>
        <source>On battery.</source>
        <translation>Im Akkubetrieb.</translation>
    </message>
    <message>
        <source>Only a file can be looked at without keeping it.</source>
        <translation>Nur eine Datei lässt sich ansehen, ohne sie zu behalten.</translation>
    </message>
    <message>
        <source>Only make connections and accept none; automatic finds out whether others can reach this computer.</source>
        <translation>Nur Verbindungen aufbauen und keine annehmen; „automatisch“ findet heraus, ob andere diesen Computer erreichen.</translation>
    </message>
    <message>
        <source>Or let skep keep it in an unencrypted file that only you can read, with --unencrypted-file.</source>
        <translation>Oder lass skep es in einer unverschlüsselten Datei aufbewahren, die nur du lesen kannst, mit --unencrypted-file.</translation>
    </message>
    <message>
        <source>Other programs need the processor.</source>
        <translation>Andere Programme brauchen den Prozessor.</translation>
    </message>
    <message>
        <source>Other programs needed the processor a moment ago.</source>
        <translation>Eben brauchten noch andere Programme den Prozessor.</translation>
    </message>
    <message>
        <source>Other terminals cannot be let in: %1 (%2).</source>
        <translation>Andere Terminals können nicht eingelassen werden: %1 (%2).</translation>
    </message>
    <message>
        <source>Others may have just left, or the connection is slow. skep tries again.</source>
        <translation>Vielleicht sind andere eben gegangen, oder die Verbindung ist langsam. skep versucht es noch einmal.</translation>
    </message>
    <message>
        <source>Outside your hours%1.</source>
        <translation>Außerhalb deiner Zeiten%1.</translation>
    </message>
    <message>
        <source>Pause for calls and films</source>
        <translation>Bei Anrufen und Filmen pausieren</translation>
    </message>
    <message>
        <source>Pause for full-screen programs</source>
        <translation>Bei Vollbildprogrammen pausieren</translation>
    </message>
    <message>
        <source>Pause on battery</source>
        <translation>Im Akkubetrieb pausieren</translation>
    </message>
    <message>
        <source>Pause while the GPU is busy</source>
        <translation>Pausieren, solange die GPU beschäftigt ist</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pausiert</translation>
    </message>
    <message>
        <source>Paused until %1.</source>
        <translation>Pausiert bis %1.</translation>
    </message>
    <message>
        <source>Paused until you resume.</source>
        <translation>Pausiert, bis du fortsetzt.</translation>
    </message>
    <message>
        <source>Paused while you use this computer.</source>
        <translation>Pausiert, während du diesen Computer nutzt.</translation>
    </message>
    <message>
        <source>Paused while you use this computer: a step of this project takes long.</source>
        <translation>Pausiert, während du diesen Computer nutzt: Ein Schritt dieses Projekts dauert lange.</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Port %1 on this computer cannot be used: %2.</source>
        <translation>Port %1 dieses Computers kann nicht genutzt werden: %2.</translation>
    </message>
    <message>
        <source>Power cap</source>
        <translation>Leistungsgrenze</translation>
    </message>
    <message>
        <source>Practice swarm</source>
        <translation>Übungsschwarm</translation>
    </message>
    <message>
        <source>Processor threads</source>
        <translation>Threads des Prozessors</translation>
    </message>
    <message>
        <source>Processor use</source>
        <translation>Nutzung des Prozessors</translation>
    </message>
    <message>
        <source>Proxy</source>
        <translation>Proxy</translation>
    </message>
    <message>
        <source>PyTorch does not say why</source>
        <translation>PyTorch sagt nicht, warum</translation>
    </message>
    <message>
        <source>Raise the setting disk.cache_gb.</source>
        <translation>Erhöhe die Einstellung disk.cache_gb.</translation>
    </message>
    <message>
        <source>Ramp</source>
        <translation>Anstieg</translation>
    </message>
    <message>
        <source>Remove the folder %1 and add the project again.</source>
        <translation>Entferne den Ordner %1 und füge das Projekt noch einmal hinzu.</translation>
    </message>
    <message>
        <source>Report this as a mistake in skep.</source>
        <translation>Melde dies als Fehler in skep.</translation>
    </message>
    <message>
        <source>Restore it from a backup, or move the file away to get a new identity.</source>
        <translation>Stelle sie aus einer Sicherung wieder her, oder verschiebe die Datei, um eine neue Kennung zu bekommen.</translation>
    </message>
    <message>
        <source>SKEP_HOME is %1, but there is no such user.</source>
        <translation>SKEP_HOME ist %1, aber diesen Nutzer gibt es nicht.</translation>
    </message>
    <message>
        <source>Saturday</source>
        <translation>Samstag</translation>
    </message>
    <message>
        <source>Schedule</source>
        <translation>Zeitplan</translation>
    </message>
    <message>
        <source>Screen lock</source>
        <translation>Bildschirmsperre</translation>
    </message>
    <message>
        <source>Send its publisher what skep identity prints; skep project accept FILE keeps the invitation you get back.</source>
        <translation>Schick dem Herausgeber, was skep identity ausgibt; skep project accept DATEI bewahrt die Einladung auf, die zurückkommt.</translation>
    </message>
    <message>
        <source>Set its publisher.key to &quot;%1&quot;.</source>
        <translation>Setze sein publisher.key auf „%1“.</translation>
    </message>
    <message>
        <source>Set membership to &quot;invited&quot; in its manifest and sign that first.</source>
        <translation>Setze membership in seinem Manifest auf „invited“ und signiere es zuerst.</translation>
    </message>
    <message>
        <source>Several projects are called &quot;%1&quot;.</source>
        <translation>Mehrere Projekte heißen „%1“.</translation>
    </message>
    <message>
        <source>Share in gentle hours while away</source>
        <translation>Anteil in sanften Stunden, wenn du weg bist</translation>
    </message>
    <message>
        <source>Share in gentle hours while you use this computer</source>
        <translation>Anteil in sanften Stunden, während du diesen Computer nutzt</translation>
    </message>
    <message>
        <source>Share while away</source>
        <translation>Anteil, wenn du weg bist</translation>
    </message>
    <message>
        <source>Share while you use this computer</source>
        <translation>Anteil, während du diesen Computer nutzt</translation>
    </message>
    <message>
        <source>Sleep, by logind</source>
        <translation>Ruhezustand, laut logind</translation>
    </message>
    <message>
        <source>Sleep, by the clocks</source>
        <translation>Ruhezustand, laut Uhren</translation>
    </message>
    <message>
        <source>Start at login</source>
        <translation>Beim Anmelden starten</translation>
    </message>
    <message>
        <source>Start in the tray, without opening the window.</source>
        <translation>Im Infobereich starten, ohne das Fenster zu öffnen.</translation>
    </message>
    <message>
        <source>Start minimised</source>
        <translation>Verkleinert starten</translation>
    </message>
    <message>
        <source>Start one with skep join.</source>
        <translation>Starte eines mit skep join.</translation>
    </message>
    <message>
        <source>Check it and try again.</source>
        <translation>Prüfe ihn und versuche es noch einmal.</translation>
    </message>
    <message>
        <source>Check it.</source>
        <translation>Prüfe ihn.</translation>
    </message>
    <message>
        <source>Choose another in the setting compute.device, or leave it empty.</source>
        <translation>Wähle in der Einstellung compute.device ein anderes, oder lass sie leer.</translation>
    </message>
    <message>
        <source>Choose another in the setting network.port, where 0 takes any free one.</source>
        <translation>Wähle einen anderen in der Einstellung network.port; 0 nimmt irgendeinen freien.</translation>
    </message>
    <message>
        <source>Choose another one.</source>
        <translation>Wähle einen anderen.</translation>
    </message>
    <message>
        <source>Give the publisher this computer&apos;s identity.</source>
        <translation>Gib dem Herausgeber die Identität dieses Computers.</translation>
    </message>
    <message>
        <source>It may be asking for its password where you cannot see it: unlock it and try again.</source>
        <translation>Vielleicht fragt er nach seinem Passwort, wo du es nicht sehen kannst: Entsperre ihn und versuche es noch einmal.</translation>
    </message>
    <message>
        <source>Nothing was downloaded. The setting compute.device can choose the processor, which is slow.</source>
        <translation>Nichts wurde heruntergeladen. Die Einstellung compute.device kann den Prozessor wählen, der langsam ist.</translation>
    </message>
    <message>
        <source>Plain http is used on this computer itself only.</source>
        <translation>Einfaches http gilt nur auf diesem Computer selbst.</translation>
    </message>
    <message>
        <source>Start one, such as GNOME Keyring or KWallet, and try again.</source>
        <translation>Starte einen, etwa GNOME Keyring oder KWallet, und versuche es noch einmal.</translation>
    </message>
    <message>
        <source>Start skep as the user who unpacked it.</source>
        <translation>Starte skep als der Benutzer, der es ausgepackt hat.</translation>
    </message>
    <message>
        <source>Start skep in the tray when you log in.</source>
        <translation>skep im Infobereich starten, wenn du dich anmeldest.</translation>
    </message>
    <message>
        <source>Stop computing while another program fills the screen.</source>
        <translation>Nicht rechnen, solange ein anderes Programm den Bildschirm füllt.</translation>
    </message>
    <message>
        <source>Stop computing while another program keeps the screen on, as a call or a film does.</source>
        <translation>Nicht rechnen, solange ein anderes Programm den Bildschirm anlässt, wie ein Anruf oder ein Film.</translation>
    </message>
    <message>
        <source>Stop computing while another program uses the GPU.</source>
        <translation>Nicht rechnen, solange ein anderes Programm die GPU nutzt.</translation>
    </message>
    <message>
        <source>Stop computing while this computer runs on its battery.</source>
        <translation>Nicht rechnen, solange dieser Computer mit Akku läuft.</translation>
    </message>
    <message>
        <source>Sunday</source>
        <translation>Sonntag</translation>
    </message>
    <message>
        <source>Tell the project&apos;s publisher.</source>
        <translation>Sag es dem Herausgeber des Projekts.</translation>
    </message>
    <message>
        <source>Tell the project&apos;s publisher. Nothing of this data was used.</source>
        <translation>Sag es dem Herausgeber des Projekts. Nichts von diesen Daten wurde genutzt.</translation>
    </message>
    <message>
        <source>Tell the project&apos;s publisher; nothing of it was used.</source>
        <translation>Sag es dem Herausgeber des Projekts; nichts davon wurde genutzt.</translation>
    </message>
    <message>
        <source>Temperature cap</source>
        <translation>Temperaturgrenze</translation>
    </message>
    <message>
        <source>That key is not the project&apos;s publisher&apos;s, so nobody would heed its invitations.</source>
        <translation>Dieser Schlüssel ist nicht der des Herausgebers, also würde niemand seine Einladungen beachten.</translation>
    </message>
    <message>
        <source>The %1 does not match its hash and was thrown away.</source>
        <translation>%1 passt nicht zur eigenen Prüfsumme und wurde verworfen.</translation>
    </message>
    <message>
        <source>The %1 is larger than %2 KiB.</source>
        <translation>%1 ist größer als %2 KiB.</translation>
    </message>
    <message>
        <source>The %1 on the data server %2 has not the %3 bytes that are promised.</source>
        <translation>%1 auf dem Datenserver %2 hat nicht die %3 Bytes, die versprochen sind.</translation>
    </message>
    <message>
        <source>The NVIDIA driver does not offer it; the card may be too old for this driver.</source>
        <translation>Der NVIDIA-Treiber bietet sie nicht an; vielleicht ist die Karte zu alt für diesen Treiber.</translation>
    </message>
    <message>
        <source>The NVIDIA driver is installed but not loaded. Restarting the computer often mends this.</source>
        <translation>Der NVIDIA-Treiber ist installiert, aber nicht geladen. Ein Neustart des Computers hilft oft.</translation>
    </message>
    <message>
        <source>The NVIDIA driver is loaded, but its library libnvidia-ml.so.1 is missing. Install the driver&apos;s libraries.</source>
        <translation>Der NVIDIA-Treiber ist geladen, aber seine Bibliothek libnvidia-ml.so.1 fehlt. Installiere die Bibliotheken des Treibers.</translation>
    </message>
    <message>
        <source>The NVIDIA driver was updated while it was running, so driver and library no longer match. Restart the computer.</source>
        <translation>Der NVIDIA-Treiber wurde im Betrieb aktualisiert, also passen Treiber und Bibliothek nicht mehr zusammen. Starte den Computer neu.</translation>
    </message>
    <message>
        <source>The TCP port on which other peers reach this computer.</source>
        <translation>Der TCP-Port, auf dem andere Peers diesen Computer erreichen.</translation>
    </message>
    <message>
        <source>The X server</source>
        <translation>Der X-Server</translation>
    </message>
    <message>
        <source>The X server does not answer.</source>
        <translation>Der X-Server antwortet nicht.</translation>
    </message>
    <message>
        <source>The X server&apos;s screen saver</source>
        <translation>Der Bildschirmschoner des X-Servers</translation>
    </message>
    <message>
        <source>The archive of skep %1 is damaged (%2).</source>
        <translation>Das Archiv von skep %1 ist beschädigt (%2).</translation>
    </message>
    <message>
        <source>The battery cannot be read: %1.</source>
        <translation>Der Akku kann nicht gelesen werden: %1.</translation>
    </message>
    <message>
        <source>The battery does not say whether the computer runs on it.</source>
        <translation>Der Akku sagt nicht, ob der Computer mit ihm läuft.</translation>
    </message>
    <message>
        <source>The card has stopped answering. Restart the computer.</source>
        <translation>Die Karte antwortet nicht mehr. Starte den Computer neu.</translation>
    </message>
    <message>
        <source>The colours of the window.</source>
        <translation>Die Farben des Fensters.</translation>
    </message>
    <message>
        <source>The compositor</source>
        <translation>Der Compositor</translation>
    </message>
    <message>
        <source>The compositor does not say when input stops: %1.</source>
        <translation>Der Compositor sagt nicht, wann die Eingaben enden: %1.</translation>
    </message>
    <message>
        <source>The compositor&apos;s idle notification</source>
        <translation>Die Leerlaufmeldung des Compositors</translation>
    </message>
    <message>
        <source>The compositor&apos;s idle notification is not to be had: %1.</source>
        <translation>Die Leerlaufmeldung des Compositors ist nicht zu haben: %1.</translation>
    </message>
    <message>
        <source>The connection to the data server %1 broke off.</source>
        <translation>Die Verbindung zum Datenserver %1 brach ab.</translation>
    </message>
    <message>
        <source>The data server %1 answers with another part of %2.</source>
        <translation>Der Datenserver %1 antwortet mit einem anderen Teil von: %2.</translation>
    </message>
    <message>
        <source>The data server %1 cannot be asked.</source>
        <translation>Der Datenserver %1 kann nicht gefragt werden.</translation>
    </message>
    <message>
        <source>The data server %1 cannot be reached.</source>
        <translation>Der Datenserver %1 kann nicht erreicht werden.</translation>
    </message>
    <message>
        <source>The data server %1 cannot go on with %2.</source>
        <translation>Der Datenserver %1 kann nicht fortsetzen: %2.</translation>
    </message>
    <message>
        <source>The data server %1 could not prove who it is.</source>
        <translation>Der Datenserver %1 konnte nicht beweisen, wer er ist.</translation>
    </message>
    <message>
        <source>The data server %1 does not answer.</source>
        <translation>Der Datenserver %1 antwortet nicht.</translation>
    </message>
    <message>
        <source>The data server %1 does not have %2 (HTTP %3).</source>
        <translation>Der Datenserver %1 hat nicht, was gebraucht wird: %2 (HTTP %3).</translation>
    </message>
    <message>
        <source>The data server %1 has a problem of its own (HTTP %2).</source>
        <translation>Der Datenserver %1 hat selbst ein Problem (HTTP %2).</translation>
    </message>
    <message>
        <source>The data server %1 is not asked, since its address is not https.</source>
        <translation>Der Datenserver %1 wird nicht gefragt, weil seine Adresse nicht https ist.</translation>
    </message>
    <message>
        <source>The data server %1 redirects to an address on this computer, which is refused.</source>
        <translation>Der Datenserver %1 leitet auf eine Adresse dieses Computers um, was abgelehnt wird.</translation>
    </message>
    <message>
        <source>The data server %1 redirects too often for %2.</source>
        <translation>Der Datenserver %1 leitet zu oft um: %2.</translation>
    </message>
    <message>
        <source>The data server %1 sends too slowly.</source>
        <translation>Der Datenserver %1 sendet zu langsam.</translation>
    </message>
    <message>
        <source>The desktop</source>
        <translation>Der Desktop</translation>
    </message>
    <message>
        <source>The details are in its log.</source>
        <translation>Die Einzelheiten stehen in seinem Protokoll.</translation>
    </message>
    <message>
        <source>The disk failed while the ledger %1 was in use.</source>
        <translation>Die Festplatte versagte, während das Kontobuch %1 genutzt wurde.</translation>
    </message>
    <message>
        <source>The disk has %1 free: %2 of training data does not fit while %3 is to stay free.</source>
        <translation>Die Festplatte hat %1 frei: %2 Trainingsdaten passen nicht, solange %3 frei bleiben sollen.</translation>
    </message>
    <message>
        <source>The disk is full: the ledger %1 cannot be written.</source>
        <translation>Die Festplatte ist voll: Das Kontobuch %1 kann nicht geschrieben werden.</translation>
    </message>
    <message>
        <source>The disk is full: training data cannot be stored in %1.</source>
        <translation>Die Festplatte ist voll: Trainingsdaten können nicht in %1 abgelegt werden.</translation>
    </message>
    <message>
        <source>The disk of %1 cannot be looked at: %2.</source>
        <translation>Der Datenträger von %1 lässt sich nicht ansehen: %2.</translation>
    </message>
    <message>
        <source>The driver tells this card&apos;s use only as a whole, with skep&apos;s own in it.</source>
        <translation>Der Treiber nennt die Nutzung dieser Karte nur als Ganzes, skeps eigene mit darin.</translation>
    </message>
    <message>
        <source>The file for starting at login, %1, cannot be %2: %3.</source>
        <translation>Die Datei für den Start beim Anmelden, %1, kann nicht %2 werden: %3.</translation>
    </message>
    <message>
        <source>The first part of the training data did not arrive within 10 minutes.</source>
        <translation>Der erste Teil der Trainingsdaten kam nicht innerhalb von 10 Minuten an.</translation>
    </message>
    <message>
        <source>The folder %1 cannot be used: %2.</source>
        <translation>Der Ordner %1 kann nicht genutzt werden: %2.</translation>
    </message>
    <message>
        <source>The graphics card does not tell %1.</source>
        <translation>Die Grafikkarte sagt dies nicht: %1.</translation>
    </message>
    <message>
        <source>The graphics card has stopped answering. Restart the computer.</source>
        <translation>Die Grafikkarte antwortet nicht mehr. Starte den Computer neu.</translation>
    </message>
    <message>
        <source>The hours of the week in which skep computes fully, gently or not at all; the last one that fits an hour counts.</source>
        <translation>Die Stunden der Woche, in denen skep voll, sanft oder gar nicht rechnet; der letzte Eintrag, der zu einer Stunde passt, zählt.</translation>
    </message>
    <message>
        <source>The idle monitor of GNOME</source>
        <translation>Der Leerlaufmelder von GNOME</translation>
    </message>
    <message>
        <source>The idle monitor of GNOME does not answer: %1.</source>
        <translation>Der Leerlaufmelder von GNOME antwortet nicht: %1.</translation>
    </message>
    <message>
        <source>The invitation cannot be written to %1: %2.</source>
        <translation>Die Einladung kann nicht nach %1 geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The invitation is for another computer: for %1, and this one is %2.</source>
        <translation>Die Einladung ist für einen anderen Computer: für %1, und dieser ist %2.</translation>
    </message>
    <message>
        <source>The invitation is for another project, &quot;%1&quot;.</source>
        <translation>Die Einladung ist für ein anderes Projekt, „%1“.</translation>
    </message>
    <message>
        <source>The invitation is not valid: %1.</source>
        <translation>Die Einladung ist nicht gültig: %1.</translation>
    </message>
    <message>
        <source>The invitation is signed by another key (%1) than the publisher&apos;s of %2 (%3).</source>
        <translation>Die Einladung ist mit einem anderen Schlüssel (%1) signiert als dem des Herausgebers von %2 (%3).</translation>
    </message>
    <message>
        <source>The invitation is to a project that is not known here, &quot;%1&quot;.</source>
        <translation>Die Einladung ist zu einem Projekt, das hier nicht bekannt ist, „%1“.</translation>
    </message>
    <message>
        <source>The invitation to %1 begins on %2 only.</source>
        <translation>Die Einladung zu %1 beginnt erst am %2.</translation>
    </message>
    <message>
        <source>The invitation to %1 expired on %2.</source>
        <translation>Die Einladung zu %1 ist am %2 abgelaufen.</translation>
    </message>
    <message>
        <source>The invitation was changed after it was signed.</source>
        <translation>Die Einladung wurde geändert, nachdem sie signiert war.</translation>
    </message>
    <message>
        <source>The key %1 cannot be read: %2.</source>
        <translation>Der Schlüssel %1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The key cannot be written to %1: %2.</source>
        <translation>Der Schlüssel kann nicht nach %1 geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The keyring chosen on this computer, %1, keeps no secrets.</source>
        <translation>Der Schlüsselbund, der auf diesem Computer gewählt ist, %1, bewahrt keine Geheimnisse auf.</translation>
    </message>
    <message>
        <source>The keyring did not answer within %1 s.</source>
        <translation>Der Schlüsselbund hat nicht innerhalb von %1 s geantwortet.</translation>
    </message>
    <message>
        <source>The keyring is locked.</source>
        <translation>Der Schlüsselbund ist gesperrt.</translation>
    </message>
    <message>
        <source>The keyring refuses: %1.</source>
        <translation>Der Schlüsselbund lehnt ab: %1.</translation>
    </message>
    <message>
        <source>The keyring took the secret and does not give it back.</source>
        <translation>Der Schlüsselbund nahm das Geheimnis und gibt es nicht zurück.</translation>
    </message>
    <message>
        <source>The known ones are: %1.</source>
        <translation>Bekannt sind: %1.</translation>
    </message>
    <message>
        <source>The language of the window and the tray.</source>
        <translation>Die Sprache des Fensters und des Infobereichs.</translation>
    </message>
    <message>
        <source>The ledger %1 cannot be opened.</source>
        <translation>Das Kontobuch %1 kann nicht geöffnet werden.</translation>
    </message>
    <message>
        <source>The ledger %1 cannot be used: %2.</source>
        <translation>Das Kontobuch %1 kann nicht genutzt werden: %2.</translation>
    </message>
    <message>
        <source>The ledger %1 cannot be written.</source>
        <translation>Das Kontobuch %1 kann nicht geschrieben werden.</translation>
    </message>
    <message>
        <source>The ledger %1 is damaged.</source>
        <translation>Das Kontobuch %1 ist beschädigt.</translation>
    </message>
    <message>
        <source>The ledger %1 is damaged: it is no SQLite file.</source>
        <translation>Das Kontobuch %1 ist beschädigt: Es ist keine SQLite-Datei.</translation>
    </message>
    <message>
        <source>The ledger %1 is held by another program.</source>
        <translation>Das Kontobuch %1 wird von einem anderen Programm gehalten.</translation>
    </message>
    <message>
        <source>The ledger %1 was written by a later version of skep.</source>
        <translation>Das Kontobuch %1 hat eine spätere Version von skep geschrieben.</translation>
    </message>
    <message>
        <source>The link %1.</source>
        <translation>Der Link %1.</translation>
    </message>
    <message>
        <source>The lock %1 cannot be opened: %2.</source>
        <translation>Die Sperre %1 kann nicht geöffnet werden: %2.</translation>
    </message>
    <message>
        <source>The log has the details.</source>
        <translation>Das Protokoll hat die Einzelheiten.</translation>
    </message>
    <message>
        <source>The log says more. Try again later.</source>
        <translation>Das Protokoll sagt mehr. Versuche es später noch einmal.</translation>
    </message>
    <message>
        <source>The login manager</source>
        <translation>Die Anmeldeverwaltung</translation>
    </message>
    <message>
        <source>The login manager does not answer: %1.</source>
        <translation>Die Anmeldeverwaltung antwortet nicht: %1.</translation>
    </message>
    <message>
        <source>The login manager knows of no session at a screen.</source>
        <translation>Die Anmeldeverwaltung kennt keine Sitzung an einem Bildschirm.</translation>
    </message>
    <message>
        <source>The login manager, which says only that the session is not idle</source>
        <translation>Die Anmeldeverwaltung, die nur sagt, dass die Sitzung nicht ruht</translation>
    </message>
    <message>
        <source>The manifest %1 is not signed: there is no %2 beside it.</source>
        <translation>Das Manifest %1 ist nicht signiert: Daneben liegt kein %2.</translation>
    </message>
    <message>
        <source>The manifest %1 names another publisher key than %2.</source>
        <translation>Das Manifest %1 nennt einen anderen Schlüssel des Herausgebers als %2.</translation>
    </message>
    <message>
        <source>The manifest at %1 is published by %2, not by whom the link names.</source>
        <translation>Das Manifest unter %1 stammt von %2, nicht von wem der Link es sagt.</translation>
    </message>
    <message>
        <source>The manifest is not valid: %1.</source>
        <translation>Das Manifest ist nicht gültig: %1.</translation>
    </message>
    <message>
        <source>The manifest is signed by another key than its publisher&apos;s.</source>
        <translation>Das Manifest ist mit einem anderen Schlüssel signiert als dem seines Herausgebers.</translation>
    </message>
    <message>
        <source>The manifest of &quot;%1&quot; expired on %2.</source>
        <translation>Das Manifest von „%1“ ist am %2 abgelaufen.</translation>
    </message>
    <message>
        <source>The manifest&apos;s %1.</source>
        <translation>Im Manifest: %1.</translation>
    </message>
    <message>
        <source>The manifest&apos;s signature does not fit it: one of the two was changed.</source>
        <translation>Die Signatur des Manifests passt nicht zu ihm: Eines von beiden wurde geändert.</translation>
    </message>
    <message>
        <source>The manifest&apos;s signature file is not valid: %1.</source>
        <translation>Die Signaturdatei des Manifests ist nicht gültig: %1.</translation>
    </message>
    <message>
        <source>The most power the GPU may draw, where the system permits setting it.</source>
        <translation>Die höchste Leistung, die die GPU aufnehmen darf, wo das System es erlaubt, sie zu setzen.</translation>
    </message>
    <message>
        <source>The most that is computed in gentle hours of the schedule while nobody uses this computer.</source>
        <translation>Wie viel höchstens in sanften Stunden des Zeitplans gerechnet wird, während niemand diesen Computer nutzt.</translation>
    </message>
    <message>
        <source>The most that is computed in gentle hours of the schedule while somebody uses this computer.</source>
        <translation>Wie viel höchstens in sanften Stunden des Zeitplans gerechnet wird, während jemand diesen Computer nutzt.</translation>
    </message>
    <message>
        <source>The new manifest of &quot;%1&quot; asks for more than you agreed to: %2.</source>
        <translation>Das neue Manifest von „%1“ verlangt mehr, als du erlaubt hast: %2.</translation>
    </message>
    <message>
        <source>The old ones are kept. Free some space on this disk, or make the folder writable for you.</source>
        <translation>Die alten bleiben. Schaffe etwas Platz auf dieser Festplatte, oder mache den Ordner für dich schreibbar.</translation>
    </message>
    <message>
        <source>The path of skep&apos;s folder is too long for this system.</source>
        <translation>Der Pfad von skeps Ordner ist zu lang für dieses System.</translation>
    </message>
    <message>
        <source>The pause cannot be remembered in %1: %2.</source>
        <translation>Die Pause kann nicht in %1 gemerkt werden: %2.</translation>
    </message>
    <message>
        <source>The practice swarm did not start within %1 seconds.</source>
        <translation>Der Übungsschwarm ist nicht innerhalb von %1 Sekunden gestartet.</translation>
    </message>
    <message>
        <source>The practice swarm ended before it could be joined.</source>
        <translation>Der Übungsschwarm endete, bevor ihm beigetreten werden konnte.</translation>
    </message>
    <message>
        <source>The practice swarm was not started.</source>
        <translation>Der Übungsschwarm wurde nicht gestartet.</translation>
    </message>
    <message>
        <source>The processor does not tell its power.</source>
        <translation>Der Prozessor sagt seine Leistung nicht.</translation>
    </message>
    <message>
        <source>The project cannot be kept in %1: %2.</source>
        <translation>Das Projekt kann nicht in %1 aufbewahrt werden: %2.</translation>
    </message>
    <message>
        <source>The project&apos;s base weights cannot be read: %1.</source>
        <translation>Die Grundgewichte des Projekts können nicht gelesen werden: %1.</translation>
    </message>
    <message>
        <source>The project&apos;s base weights cannot be used: %1.</source>
        <translation>Die Grundgewichte des Projekts können nicht genutzt werden: %1.</translation>
    </message>
    <message>
        <source>The project&apos;s server may be slow; skep tries again later.</source>
        <translation>Vielleicht ist der Server des Projekts langsam; skep versucht es später noch einmal.</translation>
    </message>
    <message>
        <source>The project&apos;s shard index is not valid: %1.</source>
        <translation>Das Datenverzeichnis des Projekts ist nicht gültig: %1.</translation>
    </message>
    <message>
        <source>The project&apos;s tokenizer has %1 tokens where the model has %2.</source>
        <translation>Der Tokenizer des Projekts hat %1 Tokens, wo das Modell %2 hat.</translation>
    </message>
    <message>
        <source>The project&apos;s tokenizer has no token %1, which masked-lm needs.</source>
        <translation>Der Tokenizer des Projekts hat kein Token %1, das masked-lm braucht.</translation>
    </message>
    <message>
        <source>The projects in %1 cannot be read: %2.</source>
        <translation>Die Projekte in %1 können nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The proxy for downloads.</source>
        <translation>Der Proxy für Downloads.</translation>
    </message>
    <message>
        <source>The request is not a JSON object.</source>
        <translation>Die Anfrage ist kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>The running skep could not answer this.</source>
        <translation>Das laufende skep konnte dies nicht beantworten.</translation>
    </message>
    <message>
        <source>The schedule is off at all hours: skep never computes.</source>
        <translation>Der Zeitplan ist zu allen Stunden aus: skep rechnet nie.</translation>
    </message>
    <message>
        <source>The screen does not say when it was last used: %1.</source>
        <translation>Der Bildschirm sagt nicht, wann er zuletzt genutzt wurde: %1.</translation>
    </message>
    <message>
        <source>The screen does not say which window is open: %1.</source>
        <translation>Der Bildschirm sagt nicht, welches Fenster offen ist: %1.</translation>
    </message>
    <message>
        <source>The screen locker</source>
        <translation>Die Bildschirmsperre</translation>
    </message>
    <message>
        <source>The screen saver</source>
        <translation>Der Bildschirmschoner</translation>
    </message>
    <message>
        <source>The screen saver does not answer: %1.</source>
        <translation>Der Bildschirmschoner antwortet nicht: %1.</translation>
    </message>
    <message>
        <source>The seed peers answer, but joining the swarm through them failed: %1.</source>
        <translation>Die Startpeers antworten, aber der Beitritt zum Schwarm über sie schlug fehl: %1.</translation>
    </message>
    <message>
        <source>The setting compute.device can choose the processor, which is slow; or choose another project.</source>
        <translation>Die Einstellung compute.device kann den Prozessor wählen, der langsam ist; oder wähle ein anderes Projekt.</translation>
    </message>
    <message>
        <source>The settings cannot be written to %1: %2.</source>
        <translation>Die Einstellungen können nicht nach %1 geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The settings file %1 cannot be read: %2.</source>
        <translation>Die Einstellungsdatei %1 kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The settings file %1 is damaged %2.</source>
        <translation>Die Einstellungsdatei %1 ist beschädigt: %2.</translation>
    </message>
    <message>
        <source>The settings file %1 is not UTF-8 text.</source>
        <translation>Die Einstellungsdatei %1 ist kein UTF-8-Text.</translation>
    </message>
    <message>
        <source>The settings file %1 is over %2 KiB.</source>
        <translation>Die Einstellungsdatei %1 ist größer als %2 KiB.</translation>
    </message>
    <message>
        <source>The shard %1… cannot be read: %2.</source>
        <translation>Der Datenteil %1… kann nicht gelesen werden: %2.</translation>
    </message>
    <message>
        <source>The shard %1… cannot be used: %2.</source>
        <translation>Der Datenteil %1… kann nicht genutzt werden: %2.</translation>
    </message>
    <message>
        <source>The share falls so that the device stays below this temperature.</source>
        <translation>Der Anteil sinkt so, dass das Gerät unter dieser Temperatur bleibt.</translation>
    </message>
    <message>
        <source>The share in gentle hours while away (%1) is above the share at all hours (%2): the lower one counts, %3.</source>
        <translation>Der Anteil in sanften Stunden, wenn du weg bist (%1), liegt über dem Anteil zu allen Stunden (%2): Der kleinere zählt, %3.</translation>
    </message>
    <message>
        <source>The share in gentle hours while you use this computer (%1) is above the share at all hours (%2): the lower one counts, %3.</source>
        <translation>Der Anteil in sanften Stunden, während du diesen Computer nutzt (%1), liegt über dem Anteil zu allen Stunden (%2): Der kleinere zählt, %3.</translation>
    </message>
    <message>
        <source>The share while you use this computer (%1) is above the share while away (%2): the lower one counts, %3.</source>
        <translation>Der Anteil, während du diesen Computer nutzt (%1), liegt über dem Anteil, wenn du weg bist (%2): Der kleinere zählt, %3.</translation>
    </message>
    <message>
        <source>The signature cannot be written beside %1: %2.</source>
        <translation>Die Signatur kann nicht neben %1 geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>The skep running in %1 did not answer%2.</source>
        <translation>Das skep, das in %1 läuft, hat nicht geantwortet%2.</translation>
    </message>
    <message>
        <source>The swarm did not take this computer&apos;s invitation.</source>
        <translation>Der Schwarm nahm die Einladung dieses Computers nicht an.</translation>
    </message>
    <message>
        <source>The swarm does not answer since this computer woke up.</source>
        <translation>Der Schwarm antwortet nicht, seit dieser Computer aufgewacht ist.</translation>
    </message>
    <message>
        <source>The system bus cannot be reached: %1.</source>
        <translation>Der Systembus kann nicht erreicht werden: %1.</translation>
    </message>
    <message>
        <source>The system lets only the administrator limit the card&apos;s power.</source>
        <translation>Das System lässt nur den Verwalter die Leistung der Karte begrenzen.</translation>
    </message>
    <message>
        <source>The tokenizer cannot be read: %1.</source>
        <translation>Der Tokenizer kann nicht gelesen werden: %1.</translation>
    </message>
    <message>
        <source>The training data in use needs %1, more than the cache limit of %2.</source>
        <translation>Die genutzten Trainingsdaten brauchen %1, mehr als die Grenze des Zwischenspeichers von %2.</translation>
    </message>
    <message>
        <source>The training process asked for data that is not in the project&apos;s index.</source>
        <translation>Der Trainingsprozess verlangte Daten, die nicht im Verzeichnis des Projekts stehen.</translation>
    </message>
    <message>
        <source>The training process could not be started: %1.</source>
        <translation>Der Trainingsprozess konnte nicht gestartet werden: %1.</translation>
    </message>
    <message>
        <source>The training process ended unexpectedly.</source>
        <translation>Der Trainingsprozess endete unerwartet.</translation>
    </message>
    <message>
        <source>The training process met an error that skep does not know.</source>
        <translation>Der Trainingsprozess traf auf einen Fehler, den skep nicht kennt.</translation>
    </message>
    <message>
        <source>The training process sent something that skep does not understand, so it was ended.</source>
        <translation>Der Trainingsprozess schickte etwas, das skep nicht versteht, und wurde darum beendet.</translation>
    </message>
    <message>
        <source>The training process was ended from outside.</source>
        <translation>Der Trainingsprozess wurde von außen beendet.</translation>
    </message>
    <message>
        <source>The update server cannot be reached, or does not have what it should.</source>
        <translation>Der Update-Server ist nicht erreichbar oder hat nicht, was er haben sollte.</translation>
    </message>
    <message>
        <source>The update server does not have skep %1.</source>
        <translation>Der Update-Server hat skep %1 nicht.</translation>
    </message>
    <message>
        <source>The update&apos;s archive holds something that skep&apos;s never do, and was refused.</source>
        <translation>Das Archiv des Updates enthält etwas, das in denen von skep nie vorkommt, und wurde abgelehnt.</translation>
    </message>
    <message>
        <source>The volunteer finds it with skep identity.</source>
        <translation>Wer eingeladen wird, findet sie mit skep identity.</translation>
    </message>
    <message>
        <source>The window manager</source>
        <translation>Die Fensterverwaltung</translation>
    </message>
    <message>
        <source>The window manager does not tell which window is in the foreground.</source>
        <translation>Die Fensterverwaltung sagt nicht, welches Fenster im Vordergrund ist.</translation>
    </message>
    <message>
        <source>The worker&apos;s log has the details.</source>
        <translation>Das Protokoll des Trainingsprozesses hat die Einzelheiten.</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>Farbschema</translation>
    </message>
    <message>
        <source>There is a key at %1 already.</source>
        <translation>Unter %1 liegt schon ein Schlüssel.</translation>
    </message>
    <message>
        <source>There is no NetworkManager here, which alone knows whether a connection is metered.</source>
        <translation>Hier gibt es keinen NetworkManager, der allein weiß, ob eine Verbindung getaktet ist.</translation>
    </message>
    <message>
        <source>There is no X server.</source>
        <translation>Es gibt keinen X-Server.</translation>
    </message>
    <message>
        <source>There is no earlier version of skep here to go back to.</source>
        <translation>Hier gibt es keine frühere Version von skep, zu der man zurückkehren könnte.</translation>
    </message>
    <message>
        <source>There is no invitation to %1 here.</source>
        <translation>Hier gibt es keine Einladung zu %1.</translation>
    </message>
    <message>
        <source>There is no key at %1.</source>
        <translation>Unter %1 liegt kein Schlüssel.</translation>
    </message>
    <message>
        <source>There is no keyring on this computer that skep can use.</source>
        <translation>Auf diesem Computer gibt es keinen Schlüsselbund, den skep nutzen kann.</translation>
    </message>
    <message>
        <source>There is no manifest at %1.</source>
        <translation>Unter %1 liegt kein Manifest.</translation>
    </message>
    <message>
        <source>There is no manifest at %1: there is no such user.</source>
        <translation>Unter %1 liegt kein Manifest: Diesen Nutzer gibt es nicht.</translation>
    </message>
    <message>
        <source>There is no project &quot;%1&quot; here.</source>
        <translation>Hier gibt es kein Projekt „%1“.</translation>
    </message>
    <message>
        <source>There is no setting “%1”.</source>
        <translation>Es gibt keine Einstellung „%1“.</translation>
    </message>
    <message>
        <source>There is not enough room for the update: it needs %1 GB with what is to stay free, and the disk of %2 has %3 GB.</source>
        <translation>Für das Update ist nicht genug Platz: Mit dem, was frei bleiben soll, braucht es %1 GB, und der Datenträger von %2 hat %3 GB.</translation>
    </message>
    <message>
        <source>This Windows is too old to tell.</source>
        <translation>Dieses Windows ist zu alt, um es zu sagen.</translation>
    </message>
    <message>
        <source>This card&apos;s power cannot be limited.</source>
        <translation>Die Leistung dieser Karte lässt sich nicht begrenzen.</translation>
    </message>
    <message>
        <source>This computer</source>
        <translation>Dieser Computer</translation>
    </message>
    <message>
        <source>This computer does not say %1.</source>
        <translation>Dieser Computer sagt nicht, %1.</translation>
    </message>
    <message>
        <source>This computer does not say when it was last used.</source>
        <translation>Dieser Computer sagt nicht, wann er zuletzt genutzt wurde.</translation>
    </message>
    <message>
        <source>This computer has no battery.</source>
        <translation>Dieser Computer hat keinen Akku.</translation>
    </message>
    <message>
        <source>This computer has no sensor for the processor&apos;s temperature, or keeps it to itself.</source>
        <translation>Dieser Computer hat keinen Fühler für die Temperatur des Prozessors, oder behält sie für sich.</translation>
    </message>
    <message>
        <source>This computer may have run out of memory: close other programs, or choose a smaller project.</source>
        <translation>Vielleicht ging diesem Computer der Arbeitsspeicher aus: Schließe andere Programme, oder nimm ein kleineres Projekt.</translation>
    </message>
    <message>
        <source>This computer&apos;s identity at %1 cannot be read or written: %2.</source>
        <translation>Die Kennung dieses Computers unter %1 kann nicht gelesen oder geschrieben werden: %2.</translation>
    </message>
    <message>
        <source>This computer&apos;s identity at %1 is damaged.</source>
        <translation>Die Kennung dieses Computers unter %1 ist beschädigt.</translation>
    </message>
    <message>
        <source>This computer&apos;s invitation to %1 expired, so the swarm no longer answers it.</source>
        <translation>Die Einladung dieses Computers zu %1 ist abgelaufen, also antwortet ihm der Schwarm nicht mehr.</translation>
    </message>
    <message>
        <source>This desktop has no idle monitor such as GNOME&apos;s.</source>
        <translation>Dieser Desktop hat keinen Leerlaufmelder wie den von GNOME.</translation>
    </message>
    <message>
        <source>This manifest of &quot;%1&quot; is revision %2, and revision %3 is known already.</source>
        <translation>Dieses Manifest von „%1“ ist Fassung %2, und Fassung %3 ist schon bekannt.</translation>
    </message>
    <message>
        <source>This manifest of &quot;%1&quot; is signed by another publisher (%2) than the one you joined (%3).</source>
        <translation>Dieses Manifest von „%1“ ist von einem anderen Herausgeber signiert (%2) als das, dem du beigetreten bist (%3).</translation>
    </message>
    <message>
        <source>This project computes in %1, which %2 cannot.</source>
        <translation>Dieses Projekt rechnet in %1, was %2 nicht kann.</translation>
    </message>
    <message>
        <source>This skep does not know of a place for updates: whoever installed it looks after them.</source>
        <translation>Dieses skep kennt keinen Ort für Updates: Darum kümmert sich, wer es installiert hat.</translation>
    </message>
    <message>
        <source>This skep was not unpacked from the portable archive, so it does not install its own updates.</source>
        <translation>Dieses skep wurde nicht aus dem portablen Archiv ausgepackt und installiert darum seine Updates nicht selbst.</translation>
    </message>
    <message>
        <source>This system does not tell programs like skep whether a connection is metered.</source>
        <translation>Dieses System sagt Programmen wie skep nicht, ob eine Verbindung getaktet ist.</translation>
    </message>
    <message>
        <source>Thursday</source>
        <translation>Donnerstag</translation>
    </message>
    <message>
        <source>Too big: needs %1 %2, you have %3.</source>
        <translation>Zu groß: braucht %1 %2, du hast %3.</translation>
    </message>
    <message>
        <source>Training at %1 share.</source>
        <translation>Trainiert mit %1 Anteil.</translation>
    </message>
    <message>
        <source>Training at full share.</source>
        <translation>Trainiert mit vollem Anteil.</translation>
    </message>
    <message>
        <source>Training cannot use %1: %2.</source>
        <translation>Training kann %1 nicht nutzen: %2.</translation>
    </message>
    <message>
        <source>Training data cannot be stored in %1: %2.</source>
        <translation>Trainingsdaten können nicht in %1 abgelegt werden: %2.</translation>
    </message>
    <message>
        <source>Training data could not be fetched.</source>
        <translation>Trainingsdaten konnten nicht geholt werden.</translation>
    </message>
    <message>
        <source>Training data was asked for before the project&apos;s shard index.</source>
        <translation>Trainingsdaten wurden vor dem Datenverzeichnis des Projekts verlangt.</translation>
    </message>
    <message>
        <source>Training data was taken before it had arrived.</source>
        <translation>Trainingsdaten wurden genommen, bevor sie da waren.</translation>
    </message>
    <message>
        <source>Training runs on the processor here.</source>
        <translation>Das Training läuft hier auf dem Prozessor.</translation>
    </message>
    <message>
        <source>Try again later.</source>
        <translation>Versuche es später noch einmal.</translation>
    </message>
    <message>
        <source>Try again later. If it stays like this, look for a newer manifest.</source>
        <translation>Versuche es später noch einmal. Bleibt es so, sieh nach einem neueren Manifest.</translation>
    </message>
    <message>
        <source>Try again. If it stays silent, end it with Ctrl-C in its own terminal.</source>
        <translation>Versuche es noch einmal. Bleibt es stumm, beende es mit Strg-C in seinem eigenen Terminal.</translation>
    </message>
    <message>
        <source>Tuesday</source>
        <translation>Dienstag</translation>
    </message>
    <message>
        <source>Unlock it and try again.</source>
        <translation>Entsperre ihn und versuche es noch einmal.</translation>
    </message>
    <message>
        <source>Wait until that is done.</source>
        <translation>Warte, bis das fertig ist.</translation>
    </message>
    <message>
        <source>What the update server offers is not signed as it must be, so nothing of it is used.</source>
        <translation>Was der Update-Server anbietet, ist nicht so signiert, wie es sein muss; nichts davon wird verwendet.</translation>
    </message>
    <message>
        <source>What the update server offers is out of date, so nothing of it is used.</source>
        <translation>Was der Update-Server anbietet, ist veraltet; nichts davon wird verwendet.</translation>
    </message>
    <message>
        <source>What the update server says of the newest skep cannot be used: %1.</source>
        <translation>Was der Update-Server über das neueste skep sagt, ist nicht brauchbar: %1.</translation>
    </message>
    <message>
        <source>What the update server says of the newest skep is too long to be read.</source>
        <translation>Was der Update-Server über das neueste skep sagt, ist zu lang, um gelesen zu werden.</translation>
    </message>
    <message>
        <source>You may not change %1, where skep lies.</source>
        <translation>Du darfst %1 nicht ändern, wo skep liegt.</translation>
    </message>
    <message>
        <source>an update</source>
        <translation>ein Update</translation>
    </message>
    <message>
        <source>it does not say how much room is needed</source>
        <translation>es sagt nicht, wie viel Platz nötig ist</translation>
    </message>
    <message>
        <source>it names no archive</source>
        <translation>es nennt kein Archiv</translation>
    </message>
    <message>
        <source>its notes are not a text</source>
        <translation>seine Notizen sind kein Text</translation>
    </message>
    <message>
        <source>its version is not three numbers</source>
        <translation>seine Version besteht nicht aus drei Zahlen</translation>
    </message>
    <message>
        <source>more than %1 bytes</source>
        <translation>mehr als %1 Byte</translation>
    </message>
    <message>
        <source>skep %1 cannot be unpacked into %2: %3.</source>
        <translation>skep %1 lässt sich nicht in %2 auspacken: %3.</translation>
    </message>
    <message>
        <source>skep %1 does not start on this computer, so it was not installed.</source>
        <translation>skep %1 startet auf diesem Computer nicht und wurde darum nicht installiert.</translation>
    </message>
    <message>
        <source>skep %1 is not newer than %2.</source>
        <translation>skep %1 ist nicht neuer als %2.</translation>
    </message>
    <message>
        <source>skep goes on as it is, and looks again tomorrow.</source>
        <translation>skep läuft weiter wie bisher und sucht morgen wieder.</translation>
    </message>
    <message>
        <source>skep in %1 cannot be changed: %2.</source>
        <translation>skep in %1 lässt sich nicht ändern: %2.</translation>
    </message>
    <message>
        <source>skep is being updated already.</source>
        <translation>skep wird gerade schon aktualisiert.</translation>
    </message>
    <message>
        <source>skep stays as it is.</source>
        <translation>skep bleibt, wie es ist.</translation>
    </message>
    <message>
        <source>skep tries again later.</source>
        <translation>skep versucht es später noch einmal.</translation>
    </message>
    <message>
        <source>skep tries again later. Close other programs, or lower the setting memory.leave_ram_gb.</source>
        <translation>skep versucht es später wieder. Schließe andere Programme, oder senke die Einstellung memory.leave_ram_gb.</translation>
    </message>
    <message>
        <source>Up gently</source>
        <translation>Sanft hinauf</translation>
    </message>
    <message>
        <source>%1 holds no join link.</source>
        <translation>%1 enthält keinen Beitrittslink.</translation>
    </message>
    <message>
        <source>Check the proxy in this system&apos;s environment.</source>
        <translation>Prüfe den Proxy in der Umgebung dieses Systems.</translation>
    </message>
    <message>
        <source>Check the setting network.proxy, which names %1.</source>
        <translation>Prüfe die Einstellung network.proxy, die %1 nennt.</translation>
    </message>
    <message>
        <source>It would be one line such as %1.</source>
        <translation>Es wäre eine Zeile wie %1.</translation>
    </message>
    <message>
        <source>Limited to %1 W.</source>
        <translation>Auf %1 W begrenzt.</translation>
    </message>
    <message>
        <source>Make its folder writable for you.</source>
        <translation>Gib dir Schreibrecht für seinen Ordner.</translation>
    </message>
    <message>
        <source>Reaching the swarm again.</source>
        <translation>Der Schwarm wird wieder gesucht.</translation>
    </message>
    <message>
        <source>The invitation to this project is looked for there: start or unlock the keyring, or accept the invitation again and keep it in a file.</source>
        <translation>Dort wird die Einladung zu diesem Projekt gesucht: Starte oder entsperre den Schlüsselbund, oder nimm die Einladung noch einmal an und bewahre sie in einer Datei auf.</translation>
    </message>
    <message>
        <source>The power cap has no effect here.</source>
        <translation>Die Leistungsgrenze wirkt hier nicht.</translation>
    </message>
    <message>
        <source>The proxy does not reach the data server %1.</source>
        <translation>Der Proxy erreicht den Datenserver %1 nicht.</translation>
    </message>
    <message>
        <source>The settings file %1 cannot be moved away: %2.</source>
        <translation>Die Einstellungsdatei %1 lässt sich nicht zur Seite legen: %2.</translation>
    </message>
    <message>
        <source>This computer slept.</source>
        <translation>Dieser Computer war im Ruhezustand.</translation>
    </message>
    <message>
        <source>Update skep, or ask the publisher for another setting.</source>
        <translation>Aktualisiere skep, oder bitte den Herausgeber um eine andere Angabe.</translation>
    </message>
    <message>
        <source>Use cpu, cuda:0 (cuda:1, …) or mps, or leave it empty.</source>
        <translation>Nimm cpu, cuda:0 (cuda:1, …) oder mps, oder lass es leer.</translation>
    </message>
    <message>
        <source>Use it with skep status, pause, resume, share and leave, or choose another folder with --home.</source>
        <translation>Nutze es mit skep status, pause, resume, share und leave, oder wähle mit --home einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Wayland does not tell which window is in the foreground, unless it is one of X11.</source>
        <translation>Wayland sagt nicht, welches Fenster im Vordergrund ist, außer es ist eines von X11.</translation>
    </message>
    <message>
        <source>Wednesday</source>
        <translation>Mittwoch</translation>
    </message>
    <message>
        <source>What answers at %1 is not the seed peer that the project names there.</source>
        <translation>Was unter %1 antwortet, ist nicht der Startpeer, den das Projekt dort nennt.</translation>
    </message>
    <message>
        <source>What computes. Without a choice the best one that works is taken.</source>
        <translation>Was rechnet. Ohne Wahl wird das beste genommen, das geht.</translation>
    </message>
    <message>
        <source>What is asked for is not a list of words.</source>
        <translation>Wonach gefragt wird, ist keine Liste von Wörtern.</translation>
    </message>
    <message>
        <source>What is kept of the project &quot;%1&quot; is damaged: %2</source>
        <translation>Was vom Projekt „%1“ aufbewahrt wird, ist beschädigt: %2</translation>
    </message>
    <message>
        <source>What is to be sent to the other skep is over %1 KiB.</source>
        <translation>Was dem anderen skep geschickt werden soll, ist größer als %1 KiB.</translation>
    </message>
    <message>
        <source>What lies at %1 is larger than %2 KiB, so it is not %3.</source>
        <translation>Was unter %1 liegt, ist größer als %2 KiB, also ist es nicht %3.</translation>
    </message>
    <message>
        <source>What skep tells you about unasked.</source>
        <translation>Was skep dir ungefragt sagt.</translation>
    </message>
    <message>
        <source>What was recorded before is kept.</source>
        <translation>Was vorher festgehalten wurde, bleibt.</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>Windows does not answer: %1.</source>
        <translation>Windows antwortet nicht: %1.</translation>
    </message>
    <message>
        <source>Windows does not know whether the screen is locked.</source>
        <translation>Windows weiß nicht, ob der Bildschirm gesperrt ist.</translation>
    </message>
    <message>
        <source>Windows does not say when this computer was last used.</source>
        <translation>Windows sagt nicht, wann dieser Computer zuletzt genutzt wurde.</translation>
    </message>
    <message>
        <source>Windows does not say whether a program fills the screen.</source>
        <translation>Windows sagt nicht, ob ein Programm den Bildschirm füllt.</translation>
    </message>
    <message>
        <source>Windows does not say whether the screen is locked.</source>
        <translation>Windows sagt nicht, ob der Bildschirm gesperrt ist.</translation>
    </message>
    <message>
        <source>You are in %1 already.</source>
        <translation>Du bist schon in %1.</translation>
    </message>
    <message>
        <source>You have no permission to use it: /dev/kfd is closed to you. Join the group render and log in again.</source>
        <translation>Du hast kein Recht, sie zu nutzen: /dev/kfd ist für dich gesperrt. Tritt der Gruppe render bei und melde dich neu an.</translation>
    </message>
    <message>
        <source>You have no permission to use it: the files /dev/nvidia* are closed to you.</source>
        <translation>Du hast kein Recht, sie zu nutzen: Die Dateien /dev/nvidia* sind für dich gesperrt.</translation>
    </message>
    <message>
        <source>You use this computer</source>
        <translation>Du nutzt diesen Computer</translation>
    </message>
    <message>
        <source>Your gentle hours: %1.</source>
        <translation>Deine sanften Stunden: %1.</translation>
    </message>
    <message>
        <source>Your pause</source>
        <translation>Deine Pause</translation>
    </message>
    <message>
        <source>Your programs need GPU memory.</source>
        <translation>Deine Programme brauchen GPU-Speicher.</translation>
    </message>
    <message>
        <source>`skep key new` makes one.</source>
        <translation>`skep key new` macht einen.</translation>
    </message>
    <message>
        <source>`skep project add FILE` adds one.</source>
        <translation>`skep project add DATEI` fügt eines hinzu.</translation>
    </message>
    <message>
        <source>a SHA-256 in 64 lower-case hex digits</source>
        <translation>ein SHA-256 in 64 kleinen Hex-Ziffern</translation>
    </message>
    <message>
        <source>a device: cpu, cuda:0 for the first GPU, or mps on a Mac</source>
        <translation>ein Gerät: cpu, cuda:0 für die erste GPU, oder mps auf einem Mac</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>eine Zahl</translation>
    </message>
    <message>
        <source>a number in it is far too large</source>
        <translation>eine Zahl darin ist viel zu groß</translation>
    </message>
    <message>
        <source>a peer id as skep identity prints it (Qm…)</source>
        <translation>eine Peer-Kennung, wie skep identity sie ausgibt (Qm…)</translation>
    </message>
    <message>
        <source>a percentage</source>
        <translation>ein Prozentwert</translation>
    </message>
    <message>
        <source>a project&apos;s id</source>
        <translation>die Kennung eines Projekts</translation>
    </message>
    <message>
        <source>a screen saver&apos;s answer is neither yes nor no</source>
        <translation>die Antwort eines Bildschirmschoners ist weder ja noch nein</translation>
    </message>
    <message>
        <source>a text</source>
        <translation>ein Text</translation>
    </message>
    <message>
        <source>a whole number</source>
        <translation>eine ganze Zahl</translation>
    </message>
    <message>
        <source>about %1 s</source>
        <translation>etwa %1 s</translation>
    </message>
    <message>
        <source>above %1 and up to</source>
        <translation>über %1 und bis zu</translation>
    </message>
    <message>
        <source>all</source>
        <translation>alles</translation>
    </message>
    <message>
        <source>an address such as http://proxy.example.org:3128</source>
        <translation>eine Adresse wie http://proxy.example.org:3128</translation>
    </message>
    <message>
        <source>and cannot be read as TOML</source>
        <translation>und kann nicht als TOML gelesen werden</translation>
    </message>
    <message>
        <source>as while using</source>
        <translation>wie bei Nutzung</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>automatisch</translation>
    </message>
    <message>
        <source>best</source>
        <translation>das beste</translation>
    </message>
    <message>
        <source>cannot be reached (%1)</source>
        <translation>kann nicht erreicht werden (%1)</translation>
    </message>
    <message>
        <source>dark</source>
        <translation>dunkel</translation>
    </message>
    <message>
        <source>did not answer within %1 s</source>
        <translation>hat nicht innerhalb von %1 s geantwortet</translation>
    </message>
    <message>
        <source>disk space</source>
        <translation>Platz auf der Festplatte</translation>
    </message>
    <message>
        <source>does not belong to %1</source>
        <translation>gehört nicht zu %1</translation>
    </message>
    <message>
        <source>from %1 to</source>
        <translation>von %1 bis</translation>
    </message>
    <message>
        <source>full, or what is not full, such as off mon-fri 9-17, gentle sat-sun</source>
        <translation>full, oder was nicht voll ist, etwa off mon-fri 9-17, gentle sat-sun</translation>
    </message>
    <message>
        <source>gradients that were not finite</source>
        <translation>Gradienten, die nicht endlich waren</translation>
    </message>
    <message>
        <source>has &quot;%1&quot;, which %2 has not</source>
        <translation>hat „%1“, was %2 nicht hat</translation>
    </message>
    <message>
        <source>has more than a manifest and a publisher</source>
        <translation>hat mehr als ein Manifest und einen Herausgeber</translation>
    </message>
    <message>
        <source>how much GPU memory is free</source>
        <translation>wie viel GPU-Speicher frei ist</translation>
    </message>
    <message>
        <source>how much memory is free</source>
        <translation>wie viel Arbeitsspeicher frei ist</translation>
    </message>
    <message>
        <source>how warm the device is</source>
        <translation>wie warm das Gerät ist</translation>
    </message>
    <message>
        <source>in line %1</source>
        <translation>in Zeile %1</translation>
    </message>
    <message>
        <source>is a name that could not be found</source>
        <translation>ist ein Name, der nicht gefunden wurde</translation>
    </message>
    <message>
        <source>is longer than %1 characters</source>
        <translation>ist länger als %1 Zeichen</translation>
    </message>
    <message>
        <source>is missing</source>
        <translation>fehlt</translation>
    </message>
    <message>
        <source>is not a join link</source>
        <translation>ist kein Beitrittslink</translation>
    </message>
    <message>
        <source>is not a known field</source>
        <translation>ist kein bekanntes Feld</translation>
    </message>
    <message>
        <source>is too high: no matrix of this model is sent with %1 less</source>
        <translation>ist zu hoch: Keine Matrix dieses Modells wird mit %1 weniger gesendet</translation>
    </message>
    <message>
        <source>it does not hold %1 images of %2 x %3 x %4</source>
        <translation>er enthält nicht %1 Bilder von %2 x %3 x %4</translation>
    </message>
    <message>
        <source>it does not hold %1 samples of %2 tokens</source>
        <translation>er enthält nicht %1 Beispiele von %2 Tokens</translation>
    </message>
    <message>
        <source>it does not hold exactly %1 %2</source>
        <translation>er enthält nicht genau %1 %2</translation>
    </message>
    <message>
        <source>it has %1 outside 0 to %2</source>
        <translation>er hat %1 außerhalb von 0 bis %2</translation>
    </message>
    <message>
        <source>it has not one label for each image</source>
        <translation>er hat nicht eine Beschriftung für jedes Bild</translation>
    </message>
    <message>
        <source>it has not the size the index promises</source>
        <translation>er hat nicht die Größe, die das Verzeichnis verspricht</translation>
    </message>
    <message>
        <source>it is another project&apos;s</source>
        <translation>es gehört zu einem anderen Projekt</translation>
    </message>
    <message>
        <source>it is larger than %1 KiB</source>
        <translation>es ist größer als %1 KiB</translation>
    </message>
    <message>
        <source>it is nested too deeply</source>
        <translation>es ist zu tief verschachtelt</translation>
    </message>
    <message>
        <source>it is not JSON (line %1)</source>
        <translation>es ist kein JSON (Zeile %1)</translation>
    </message>
    <message>
        <source>it is not UTF-8 text</source>
        <translation>es ist kein UTF-8-Text</translation>
    </message>
    <message>
        <source>it is not a JSON object</source>
        <translation>es ist kein JSON-Objekt</translation>
    </message>
    <message>
        <source>it is not a safetensors file</source>
        <translation>es ist keine safetensors-Datei</translation>
    </message>
    <message>
        <source>it is not complete</source>
        <translation>es ist nicht vollständig</translation>
    </message>
    <message>
        <source>it lacks the screen saver extension</source>
        <translation>ihm fehlt die Erweiterung für den Bildschirmschoner</translation>
    </message>
    <message>
        <source>it needs the program setpriv</source>
        <translation>dazu braucht es das Programm setpriv</translation>
    </message>
    <message>
        <source>it needs the program swayidle</source>
        <translation>dazu braucht es das Programm swayidle</translation>
    </message>
    <message>
        <source>its answer is no time</source>
        <translation>die Antwort ist keine Zeit</translation>
    </message>
    <message>
        <source>its answer makes no sense: %1</source>
        <translation>die Antwort ergibt keinen Sinn: %1</translation>
    </message>
    <message>
        <source>its free memory</source>
        <translation>ihren freien Speicher</translation>
    </message>
    <message>
        <source>its labels are not int32</source>
        <translation>seine Beschriftungen sind nicht int32</translation>
    </message>
    <message>
        <source>its memory is full</source>
        <translation>sein Speicher ist voll</translation>
    </message>
    <message>
        <source>its pixels are not uint8</source>
        <translation>seine Bildpunkte sind nicht uint8</translation>
    </message>
    <message>
        <source>its power</source>
        <translation>ihre Leistung</translation>
    </message>
    <message>
        <source>its temperature</source>
        <translation>ihre Temperatur</translation>
    </message>
    <message>
        <source>its tokens are neither uint8 nor int32</source>
        <translation>seine Tokens sind weder uint8 noch int32</translation>
    </message>
    <message>
        <source>its use</source>
        <translation>ihre Nutzung</translation>
    </message>
    <message>
        <source>later</source>
        <translation>später</translation>
    </message>
    <message>
        <source>left before the round</source>
        <translation>vor der Runde gegangen</translation>
    </message>
    <message>
        <source>less than 1 s</source>
        <translation>weniger als 1 s</translation>
    </message>
    <message>
        <source>light</source>
        <translation>hell</translation>
    </message>
    <message>
        <source>macOS does not say when this computer was last used: %1.</source>
        <translation>macOS sagt nicht, wann dieser Computer zuletzt genutzt wurde: %1.</translation>
    </message>
    <message>
        <source>macOS tells this to the administrator only.</source>
        <translation>macOS sagt dies nur dem Verwalter.</translation>
    </message>
    <message>
        <source>more bytes came than the shard has</source>
        <translation>es kamen mehr Bytes, als der Datenteil hat</translation>
    </message>
    <message>
        <source>must be &quot;bytes&quot;, or an object with url and sha256</source>
        <translation>muss „bytes“ sein, oder ein Objekt mit url und sha256</translation>
    </message>
    <message>
        <source>must be &quot;ed25519:&quot; and a key of 32 bytes in base64</source>
        <translation>muss „ed25519:“ und ein Schlüssel von 32 Bytes in Base64 sein</translation>
    </message>
    <message>
        <source>must be %1</source>
        <translation>muss so sein: %1</translation>
    </message>
    <message>
        <source>must be %1 with the tokenizer bytes</source>
        <translation>muss mit dem Tokenizer bytes %1 sein</translation>
    </message>
    <message>
        <source>must be a list of %1 values</source>
        <translation>muss eine Liste von %1 Werten sein</translation>
    </message>
    <message>
        <source>must be a multiple of heads</source>
        <translation>muss ein Vielfaches von heads sein</translation>
    </message>
    <message>
        <source>must be a multiple of patch_size</source>
        <translation>muss ein Vielfaches von patch_size sein</translation>
    </message>
    <message>
        <source>must be a number %1 %2%3</source>
        <translation>muss eine Zahl sein, %1 %2%3</translation>
    </message>
    <message>
        <source>must be a time such as 2027-12-31T00:00:00Z</source>
        <translation>muss eine Zeit sein wie 2027-12-31T00:00:00Z</translation>
    </message>
    <message>
        <source>must be a whole number from %1 to %2</source>
        <translation>muss eine ganze Zahl von %1 bis %2 sein</translation>
    </message>
    <message>
        <source>must be an address such as /ip4/203.0.113.7/tcp/31337/p2p/Qm…</source>
        <translation>muss eine Adresse sein wie /ip4/203.0.113.7/tcp/31337/p2p/Qm…</translation>
    </message>
    <message>
        <source>must be an even multiple of heads for llama</source>
        <translation>muss für llama ein gerades Vielfaches von heads sein</translation>
    </message>
    <message>
        <source>must be an https address (http only on this computer itself)</source>
        <translation>muss eine https-Adresse sein (http nur auf diesem Computer selbst)</translation>
    </message>
    <message>
        <source>must be an object</source>
        <translation>muss ein Objekt sein</translation>
    </message>
    <message>
        <source>must be below total_epochs</source>
        <translation>muss unter total_epochs liegen</translation>
    </message>
    <message>
        <source>must be longer than matchmaking_seconds</source>
        <translation>muss länger als matchmaking_seconds sein</translation>
    </message>
    <message>
        <source>must be text</source>
        <translation>muss Text sein</translation>
    </message>
    <message>
        <source>must be text of %1 to %2 characters</source>
        <translation>muss Text von %1 bis %2 Zeichen sein</translation>
    </message>
    <message>
        <source>must be true or false</source>
        <translation>muss true oder false sein</translation>
    </message>
    <message>
        <source>must divide heads</source>
        <translation>muss heads teilen</translation>
    </message>
    <message>
        <source>must name its %1 once</source>
        <translation>muss dies einmal nennen: %1</translation>
    </message>
    <message>
        <source>must not be above the base&apos;s positions</source>
        <translation>darf nicht über den Positionen der Grundlage liegen</translation>
    </message>
    <message>
        <source>names a target twice</source>
        <translation>nennt ein Ziel zweimal</translation>
    </message>
    <message>
        <source>names no manifest on the web, which would begin with https://</source>
        <translation>nennt kein Manifest im Web, das mit https:// beginnen würde</translation>
    </message>
    <message>
        <source>names no publisher, which would be 16 hex digits or a key that begins with ed25519:</source>
        <translation>nennt keinen Herausgeber, das wären 16 Hex-Ziffern oder ein Schlüssel, der mit ed25519: beginnt</translation>
    </message>
    <message>
        <source>needs delay_optimizer_step: there is no gradient to step on yet</source>
        <translation>braucht delay_optimizer_step: Noch gibt es keinen Gradienten für einen Schritt</translation>
    </message>
    <message>
        <source>needs delay_state_averaging: the state follows the step</source>
        <translation>braucht delay_state_averaging: Der Stand folgt dem Schritt</translation>
    </message>
    <message>
        <source>needs offload_optimizer: the step runs beside training</source>
        <translation>braucht offload_optimizer: Der Schritt läuft neben dem Training</translation>
    </message>
    <message>
        <source>no</source>
        <translation>nein</translation>
    </message>
    <message>
        <source>no X server listens at %1</source>
        <translation>unter %1 hört kein X-Server</translation>
    </message>
    <message>
        <source>no bus at %1: %2</source>
        <translation>kein Bus unter %1: %2</translation>
    </message>
    <message>
        <source>no group was found for the round</source>
        <translation>für die Runde fand sich keine Gruppe</translation>
    </message>
    <message>
        <source>no other peer</source>
        <translation>kein anderer Peer</translation>
    </message>
    <message>
        <source>no other peer&apos;s data arrived</source>
        <translation>von keinem anderen Peer kamen Daten an</translation>
    </message>
    <message>
        <source>no screen saver tells whether it is active</source>
        <translation>kein Bildschirmschoner sagt, ob er aktiv ist</translation>
    </message>
    <message>
        <source>no session at a screen</source>
        <translation>keine Sitzung an einem Bildschirm</translation>
    </message>
    <message>
        <source>no session or power manager lists who keeps the screen awake</source>
        <translation>keine Sitzungs- oder Energieverwaltung zählt auf, wer den Bildschirm wach hält</translation>
    </message>
    <message>
        <source>none</source>
        <translation>ohne</translation>
    </message>
    <message>
        <source>of disk space</source>
        <translation>Platz auf der Festplatte</translation>
    </message>
    <message>
        <source>of memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>of memory on %1</source>
        <translation>Speicher auf %1</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message>
        <source>on</source>
        <translation>an</translation>
    </message>
    <message>
        <source>one of %1</source>
        <translation>eines von %1</translation>
    </message>
    <message>
        <source>one of a few words</source>
        <translation>eines von wenigen Wörtern</translation>
    </message>
    <message>
        <source>one tensor</source>
        <translation>einen Tensor</translation>
    </message>
    <message>
        <source>part of the round failed</source>
        <translation>ein Teil der Runde schlug fehl</translation>
    </message>
    <message>
        <source>pause</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>pausiert</translation>
    </message>
    <message>
        <source>paused until %1</source>
        <translation>pausiert bis %1</translation>
    </message>
    <message>
        <source>problems</source>
        <translation>Probleme</translation>
    </message>
    <message>
        <source>processor</source>
        <translation>Der Prozessor</translation>
    </message>
    <message>
        <source>project&apos;s shard index</source>
        <translation>Das Datenverzeichnis des Projekts</translation>
    </message>
    <message>
        <source>read</source>
        <translation>gelesen</translation>
    </message>
    <message>
        <source>refuses the connection</source>
        <translation>lehnt die Verbindung ab</translation>
    </message>
    <message>
        <source>removed</source>
        <translation>entfernt</translation>
    </message>
    <message>
        <source>shard %1…</source>
        <translation>Datenteil %1…</translation>
    </message>
    <message>
        <source>shards is empty</source>
        <translation>shards ist leer</translation>
    </message>
    <message>
        <source>skep can limit the power of NVIDIA cards only.</source>
        <translation>skep kann nur die Leistung von NVIDIA-Karten begrenzen.</translation>
    </message>
    <message>
        <source>skep does not know this kind of device</source>
        <translation>skep kennt diese Art von Gerät nicht</translation>
    </message>
    <message>
        <source>skep does not start itself at login on Windows yet: put a link to it into the Startup folder.</source>
        <translation>Unter Windows startet skep noch nicht von selbst beim Anmelden: Lege eine Verknüpfung in den Autostart-Ordner.</translation>
    </message>
    <message>
        <source>skep ended before the round</source>
        <translation>skep endete vor der Runde</translation>
    </message>
    <message>
        <source>skep is already running in %1%2.</source>
        <translation>skep läuft schon in %1%2.</translation>
    </message>
    <message>
        <source>skep is still leaving %1.</source>
        <translation>skep verlässt noch %1.</translation>
    </message>
    <message>
        <source>skep met an error of its own and goes on.</source>
        <translation>skep traf auf einen eigenen Fehler und macht weiter.</translation>
    </message>
    <message>
        <source>skep project add %1 fetches it.</source>
        <translation>skep project add %1 holt es.</translation>
    </message>
    <message>
        <source>skep project invitations lists them.</source>
        <translation>skep project invitations zählt sie auf.</translation>
    </message>
    <message>
        <source>skep settings lists all of them.</source>
        <translation>skep settings zählt alle auf.</translation>
    </message>
    <message>
        <source>skep tries again.</source>
        <translation>skep versucht es noch einmal.</translation>
    </message>
    <message>
        <source>skep tries again. If it happens again, update the graphics driver or restart this computer.</source>
        <translation>skep versucht es noch einmal. Geschieht es wieder, aktualisiere den Grafiktreiber oder starte diesen Computer neu.</translation>
    </message>
    <message>
        <source>skep tries again; check that the network is connected.</source>
        <translation>skep versucht es noch einmal; prüfe, ob das Netz verbunden ist.</translation>
    </message>
    <message>
        <source>skep tries another peer.</source>
        <translation>skep versucht einen anderen Peer.</translation>
    </message>
    <message>
        <source>skep was not running.</source>
        <translation>skep lief nicht.</translation>
    </message>
    <message>
        <source>swayidle does not start: %1</source>
        <translation>swayidle startet nicht: %1</translation>
    </message>
    <message>
        <source>swayidle ends at once, as this compositor may not offer it</source>
        <translation>swayidle endet sofort, vielleicht bietet dieser Compositor es nicht an</translation>
    </message>
    <message>
        <source>swayidle has ended</source>
        <translation>swayidle wurde beendet</translation>
    </message>
    <message>
        <source>system</source>
        <translation>wie das System</translation>
    </message>
    <message>
        <source>takes even a single computer without a GPU only</source>
        <translation>dauert selbst mit nur einem Computer ohne GPU nur</translation>
    </message>
    <message>
        <source>the X server does not let us in: %1</source>
        <translation>der X-Server lässt uns nicht ein: %1</translation>
    </message>
    <message>
        <source>the X server is gone: %1</source>
        <translation>der X-Server ist weg: %1</translation>
    </message>
    <message>
        <source>the X server took longer than %1 s</source>
        <translation>der X-Server brauchte länger als %1 s</translation>
    </message>
    <message>
        <source>the X server took longer than %1 s to greet us</source>
        <translation>der X-Server brauchte länger als %1 s für die Begrüßung</translation>
    </message>
    <message>
        <source>the averaged gradients were not finite</source>
        <translation>die gemittelten Gradienten waren nicht endlich</translation>
    </message>
    <message>
        <source>the bus at %1 does not let us in: %2</source>
        <translation>der Bus unter %1 lässt uns nicht ein: %2</translation>
    </message>
    <message>
        <source>the bus is gone</source>
        <translation>der Bus ist weg</translation>
    </message>
    <message>
        <source>the bus is gone or talks nonsense: %1</source>
        <translation>der Bus ist weg oder redet Unsinn: %1</translation>
    </message>
    <message>
        <source>the bus takes no call: %1</source>
        <translation>der Bus nimmt keinen Aufruf an: %1</translation>
    </message>
    <message>
        <source>the key kept here</source>
        <translation>der Schlüssel, der hier liegt</translation>
    </message>
    <message>
        <source>the manifest</source>
        <translation>das Manifest</translation>
    </message>
    <message>
        <source>the manifest&apos;s signature</source>
        <translation>die Signatur des Manifests</translation>
    </message>
    <message>
        <source>the operating system</source>
        <translation>das Betriebssystem</translation>
    </message>
    <message>
        <source>the optimizer did not use the result</source>
        <translation>der Optimierer hat das Ergebnis nicht genutzt</translation>
    </message>
    <message>
        <source>the round could not begin</source>
        <translation>die Runde konnte nicht beginnen</translation>
    </message>
    <message>
        <source>the round failed</source>
        <translation>die Runde schlug fehl</translation>
    </message>
    <message>
        <source>the round took too long</source>
        <translation>die Runde dauerte zu lange</translation>
    </message>
    <message>
        <source>the shard %1… is listed twice</source>
        <translation>der Datenteil %1… steht zweimal da</translation>
    </message>
    <message>
        <source>the time since the last input</source>
        <translation>wie lange die letzte Eingabe her ist</translation>
    </message>
    <message>
        <source>the training process stopped</source>
        <translation>der Trainingsprozess hielt an</translation>
    </message>
    <message>
        <source>the worker stopped before the round</source>
        <translation>der Trainingsprozess hielt vor der Runde an</translation>
    </message>
    <message>
        <source>there are only %1 GPUs</source>
        <translation>es gibt nur %1 GPUs</translation>
    </message>
    <message>
        <source>there is no X display</source>
        <translation>es gibt keine X-Anzeige</translation>
    </message>
    <message>
        <source>there is no such bus</source>
        <translation>diesen Bus gibt es nicht</translation>
    </message>
    <message>
        <source>there is only one GPU</source>
        <translation>es gibt nur eine GPU</translation>
    </message>
    <message>
        <source>they are not a safetensors file</source>
        <translation>sie sind keine safetensors-Datei</translation>
    </message>
    <message>
        <source>this Mac or its macOS does not offer its GPU to PyTorch</source>
        <translation>dieser Mac oder sein macOS bietet PyTorch seine GPU nicht an</translation>
    </message>
    <message>
        <source>this PyTorch is built for %1 and finds no working GPU</source>
        <translation>dieses PyTorch ist für %1 gebaut und findet keine GPU, die geht</translation>
    </message>
    <message>
        <source>this PyTorch was built without Apple GPU support</source>
        <translation>dieses PyTorch wurde ohne Unterstützung für Apple-GPUs gebaut</translation>
    </message>
    <message>
        <source>this PyTorch was built without CUDA</source>
        <translation>dieses PyTorch wurde ohne CUDA gebaut</translation>
    </message>
    <message>
        <source>this PyTorch was not built for this model of card</source>
        <translation>dieses PyTorch wurde nicht für dieses Kartenmodell gebaut</translation>
    </message>
    <message>
        <source>this computer had fallen behind the swarm</source>
        <translation>dieser Computer war hinter den Schwarm zurückgefallen</translation>
    </message>
    <message>
        <source>this computer was asleep</source>
        <translation>dieser Computer schlief</translation>
    </message>
    <message>
        <source>this computer was paused</source>
        <translation>dieser Computer war pausiert</translation>
    </message>
    <message>
        <source>traffic per 1000 samples %1 → %2 MB</source>
        <translation>Verkehr je 1000 Beispiele %1 → %2 MB</translation>
    </message>
    <message>
        <source>tried again later</source>
        <translation>später noch einmal versucht</translation>
    </message>
    <message>
        <source>two tensors</source>
        <translation>zwei Tensoren</translation>
    </message>
    <message>
        <source>until %1</source>
        <translation>bis %1</translation>
    </message>
    <message>
        <source>what other programs use of the GPU</source>
        <translation>was andere Programme von der GPU nutzen</translation>
    </message>
    <message>
        <source>what other programs use of the processor</source>
        <translation>was andere Programme vom Prozessor nutzen</translation>
    </message>
    <message>
        <source>what runs on it</source>
        <translation>was auf ihr läuft</translation>
    </message>
    <message>
        <source>what the device draws</source>
        <translation>was das Gerät aufnimmt</translation>
    </message>
    <message>
        <source>whether a call or film is running</source>
        <translation>ob ein Anruf oder Film läuft</translation>
    </message>
    <message>
        <source>whether a full-screen program is open</source>
        <translation>ob ein Vollbildprogramm offen ist</translation>
    </message>
    <message>
        <source>whether the connection is metered</source>
        <translation>ob die Verbindung getaktet ist</translation>
    </message>
    <message>
        <source>whether the screen is locked</source>
        <translation>ob der Bildschirm gesperrt ist</translation>
    </message>
    <message>
        <source>whether this computer is on battery</source>
        <translation>ob dieser Computer mit Akku läuft</translation>
    </message>
    <message>
        <source>within %1 seconds</source>
        <translation>innerhalb von %1 Sekunden</translation>
    </message>
    <message>
        <source>written</source>
        <translation>geschrieben</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>ja</translation>
    </message>
    <message>
        <source>yes or no</source>
        <translation>ja oder nein</translation>
    </message>
    <message>
        <source>“%1” is not a peer id: it%2.</source>
        <translation>„%1“ ist keine Peer-Kennung: Es %2.</translation>
    </message>
    <message>
        <source>“%1” is nothing to imagine.</source>
        <translation>„%1“ ist nichts, was man sich vorstellen kann.</translation>
    </message>
</context>
</TS>
