BEGIN TRANSACTION;
CREATE TABLE contributions (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        id TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        samples INTEGER NOT NULL CHECK (samples >= 0),
        state TEXT NOT NULL CHECK (state IN ('pending', 'confirmed', 'lost')),
        reason TEXT NOT NULL,
        peers INTEGER NOT NULL,
        recorded_at REAL NOT NULL,
        settled_at REAL CHECK ((settled_at IS NULL) = (state = 'pending')),
        UNIQUE (project, id)
    ) STRICT;
INSERT INTO "contributions" VALUES(1,'p','a',3,64,'confirmed','',2,1000.0,1060.0);
INSERT INTO "contributions" VALUES(2,'p','b',4,32,'lost','the round failed',0,1060.0,1120.0);
INSERT INTO "contributions" VALUES(3,'q','c',4,16,'pending','',0,1120.0,NULL);
CREATE TABLE evaluations (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        loss REAL, -- NULL stands for "not a number", which SQLite does not have
        measured_at REAL NOT NULL
    ) STRICT;
INSERT INTO "evaluations" VALUES(1,'p',3,2.5,1060.0);
INSERT INTO "evaluations" VALUES(2,'p',4,NULL,1120.0);
CREATE TABLE positions (
        project TEXT PRIMARY KEY,
        position INTEGER NOT NULL CHECK (position >= 0),
        saved_at REAL NOT NULL
    ) STRICT;
INSERT INTO "positions" VALUES('p',4096,1120.0);
CREATE INDEX contributions_pending ON contributions (project) WHERE state = 'pending';
CREATE TRIGGER settled_is_not_replaced BEFORE INSERT ON contributions
    WHEN EXISTS (
        SELECT 1 FROM contributions
        WHERE (number = NEW.number OR (project = NEW.project AND id = NEW.id)) AND state <> 'pending'
    ) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER settled_is_not_changed BEFORE UPDATE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution never changes'); END;
CREATE TRIGGER settled_is_not_deleted BEFORE DELETE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution is never deleted'); END;
CREATE TRIGGER contribution_keeps_its_name BEFORE UPDATE OF number, project, id, recorded_at ON contributions
    BEGIN SELECT RAISE(ABORT, 'a contribution keeps its project, id and time'); END;
CREATE INDEX evaluations_of_project ON evaluations (project);
COMMIT;
PRAGMA user_version = 1;
