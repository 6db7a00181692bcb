BEGIN TRANSACTION;
CREATE TABLE changes (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        project TEXT NOT NULL,
        share REAL NOT NULL,
        rule TEXT NOT NULL,
        reason TEXT NOT NULL,
        memory TEXT NOT NULL,
        network INTEGER NOT NULL CHECK (network IN (0, 1))
    ) STRICT;
INSERT INTO "changes" VALUES(1,1790000000.0,'tiny-code-lm',0.5,'away','Training at 50 % share.','keep',1);
INSERT INTO "changes" VALUES(2,1790000060.0,'tiny-code-lm',1.0,'away','Training at full share.','keep',1);
INSERT INTO "changes" VALUES(3,1790000120.0,'tiny-code-lm',0.0,'paused','Paused until you resume.','keep',1);
INSERT INTO "changes" VALUES(4,1790000180.0,'tiny-code-lm',0.0,'paused','Paused until 14:23.','keep',1);
INSERT INTO "changes" VALUES(5,1790000240.0,'tiny-code-lm',0.0,'paused','Paused until Thursday 14:13.','keep',1);
INSERT INTO "changes" VALUES(6,1790000300.0,'tiny-code-lm',0.0,'paused','Paused until 2026-10-21 14:13.','keep',1);
INSERT INTO "changes" VALUES(7,1790000360.0,'tiny-code-lm',0.0,'schedule','Outside your hours.','keep',1);
INSERT INTO "changes" VALUES(8,1790000420.0,'tiny-code-lm',0.2,'schedule','Your gentle hours: 20 % until 00:00.','keep',1);
INSERT INTO "changes" VALUES(9,1790000480.0,'tiny-code-lm',0.2,'schedule','Your gentle hours: 20 % until 23:00.','keep',1);
INSERT INTO "changes" VALUES(10,1790000540.0,'tiny-code-lm',0.0,'schedule','Your gentle hours: paused.','keep',1);
INSERT INTO "changes" VALUES(11,1790000600.0,'tiny-code-lm',0.0,'input','Paused while you use this computer.','keep',1);
INSERT INTO "changes" VALUES(12,1790000660.0,'tiny-code-lm',0.0,'battery','On battery.','keep',1);
INSERT INTO "changes" VALUES(13,1790000720.0,'tiny-code-lm',0.2,'input','This computer does not say when it was last used. 20 % to be safe.','keep',1);
INSERT INTO "changes" VALUES(14,1790000780.0,'tiny-code-lm',0.0,'metered','On a metered connection.','keep',1);
INSERT INTO "changes" VALUES(15,1790000840.0,'tiny-code-lm',0.0,'full_screen','A full-screen program is open.','keep',1);
INSERT INTO "changes" VALUES(16,1790000900.0,'tiny-code-lm',0.0,'call','A call or film is running.','keep',1);
INSERT INTO "changes" VALUES(17,1790000960.0,'tiny-code-lm',0.0,'busy_gpu','Another program is using the GPU.','keep',1);
INSERT INTO "changes" VALUES(18,1790001020.0,'tiny-code-lm',0.2,'busy_processor','Other programs need the processor.','keep',1);
INSERT INTO "changes" VALUES(19,1790001080.0,'tiny-code-lm',0.2,'input','20 % while you use this computer.','keep',1);
INSERT INTO "changes" VALUES(20,1790001140.0,'tiny-code-lm',0.0,'input','Paused while you use this computer: a step of this project takes long.','keep',1);
INSERT INTO "changes" VALUES(21,1790001200.0,'tiny-code-lm',0.2,'input','The screen does not say when it was last used: no X server. 20 % until it answers again.','keep',1);
INSERT INTO "changes" VALUES(22,1790001260.0,'tiny-code-lm',0.4,'heat','Keeping the GPU under 80 °C.','keep',1);
INSERT INTO "changes" VALUES(23,1790001320.0,'tiny-code-lm',0.4,'heat','Keeping the processor under 80 °C.','keep',1);
INSERT INTO "changes" VALUES(24,1790001380.0,'tiny-code-lm',0.0,'gpu_memory','Your programs need GPU memory.','keep',1);
INSERT INTO "changes" VALUES(25,1790001440.0,'tiny-code-lm',1.0,'power_cap','Limited to 150 W.','keep',1);
INSERT INTO "changes" VALUES(26,1790001500.0,'tiny-code-lm',0.0,'battery','On battery a moment ago.','keep',1);
INSERT INTO "changes" VALUES(27,1790001560.0,'tiny-code-lm',0.0,'metered','On a metered connection a moment ago.','keep',1);
INSERT INTO "changes" VALUES(28,1790001620.0,'tiny-code-lm',0.0,'full_screen','A full-screen program was open a moment ago.','keep',1);
INSERT INTO "changes" VALUES(29,1790001680.0,'tiny-code-lm',0.0,'call','A call or film was running a moment ago.','keep',1);
INSERT INTO "changes" VALUES(30,1790001740.0,'tiny-code-lm',0.0,'busy_gpu','Another program was using the GPU a moment ago.','keep',1);
INSERT INTO "changes" VALUES(31,1790001800.0,'tiny-code-lm',0.0,'busy_processor','Other programs needed the processor a moment ago.','keep',1);
INSERT INTO "changes" VALUES(32,1790001860.0,'tiny-code-lm',0.3,'ramp','Going up gently to 50 %.','keep',1);
INSERT INTO "changes" VALUES(33,1790001920.0,'tiny-code-lm',0.0,'sleep','This computer slept.','keep',1);
INSERT INTO "changes" VALUES(34,1790001980.0,'tiny-code-lm',0.0,'again','Reaching the swarm again.','keep',1);
INSERT INTO "changes" VALUES(35,1790002040.0,'',0.0,'','skep was not running.','keep',1);
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
        settled_at REAL CHECK ((settled_at IS NULL) = (state = 'pending')), swarm INTEGER NOT NULL DEFAULT 0 CHECK (swarm >= 0),
        UNIQUE (project, id)
    ) STRICT;
INSERT INTO "contributions" VALUES(1,'tiny-code-lm','lost-0',0,8,'lost','left before the round',0,1.79543730260053944593e+09,1.79543730260428237915e+09,0);
INSERT INTO "contributions" VALUES(2,'tiny-code-lm','lost-1',1,8,'lost','the worker stopped before the round',0,1.79543730260528469093e+09,1.79543730261709022521e+09,0);
INSERT INTO "contributions" VALUES(3,'tiny-code-lm','lost-2',2,8,'lost','skep ended before the round',0,1.79543730262229776382e+09,1.79543730262852048876e+09,0);
INSERT INTO "contributions" VALUES(4,'tiny-code-lm','lost-3',3,8,'lost','the training process stopped',0,1.79543730263653445247e+09,1.7954373026445789337e+09,0);
INSERT INTO "contributions" VALUES(5,'tiny-code-lm','lost-4',4,8,'lost','gradients that were not finite',0,1.79543730265256834032e+09,1.79543730266058516507e+09,0);
INSERT INTO "contributions" VALUES(6,'tiny-code-lm','lost-5',5,8,'lost','the averaged gradients were not finite',0,1.79543730266854691503e+09,1.79543730267656850819e+09,0);
INSERT INTO "contributions" VALUES(7,'tiny-code-lm','lost-6',6,8,'lost','no other peer''s data arrived',0,1.79543730268056941036e+09,1.79543730268454575539e+09,0);
INSERT INTO "contributions" VALUES(8,'tiny-code-lm','lost-7',7,8,'lost','part of the round failed',0,1.7954373026885354519e+09,1.79543730269253325464e+09,0);
INSERT INTO "contributions" VALUES(9,'tiny-code-lm','lost-8',8,8,'lost','the optimizer did not use the result',0,1.79543730269652843482e+09,1.79543730269871211055e+09,0);
INSERT INTO "contributions" VALUES(10,'tiny-code-lm','lost-9',9,8,'lost','no other peer',0,1.79543730270005083083e+09,1.79543730270452070235e+09,0);
INSERT INTO "contributions" VALUES(11,'tiny-code-lm','lost-10',10,8,'lost','this computer was asleep',0,1.79543730270852279658e+09,1.79543730271252012248e+09,0);
INSERT INTO "contributions" VALUES(12,'tiny-code-lm','lost-11',11,8,'lost','this computer was paused',0,1.79543730271651029591e+09,1.7954373027205071449e+09,0);
INSERT INTO "contributions" VALUES(13,'tiny-code-lm','lost-12',12,8,'lost','this computer had fallen behind the swarm',0,1.79543730272450661666e+09,1.79543730272852253911e+09,0);
INSERT INTO "contributions" VALUES(14,'tiny-code-lm','lost-13',13,8,'lost','the round could not begin',0,1.79543730273088955875e+09,1.79543730273651885986e+09,0);
INSERT INTO "contributions" VALUES(15,'tiny-code-lm','lost-14',14,8,'lost','the round took too long',0,1.79543730274050307273e+09,1.79543730274450492856e+09,0);
INSERT INTO "contributions" VALUES(16,'tiny-code-lm','lost-15',15,8,'lost','no group was found for the round',0,1.79543730274851012231e+09,1.79543730275251173971e+09,0);
INSERT INTO "contributions" VALUES(17,'tiny-code-lm','lost-16',16,8,'lost','the round failed',0,1.79543730275651836395e+09,1.79543730276050758363e+09,0);
INSERT INTO "contributions" VALUES(18,'tiny-code-lm','ok-0',0,64,'confirmed','',2,1.79543730276452183727e+09,1.79543730276852869982e+09,0);
INSERT INTO "contributions" VALUES(19,'tiny-code-lm','ok-1',1,64,'confirmed','',2,1.79543730277252292634e+09,1.79543730277652215958e+09,0);
INSERT INTO "contributions" VALUES(20,'tiny-code-lm','ok-2',2,64,'confirmed','',2,1.79543730278052496912e+09,1.79543730278451919551e+09,0);
INSERT INTO "contributions" VALUES(21,'tiny-code-lm','open',99,5,'pending','',0,1.79543730278853082664e+09,NULL,0);
CREATE TABLE evaluations (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        loss REAL, -- NULL stands for "not a number", which SQLite does not have
        measured_at REAL NOT NULL
    ) STRICT;
INSERT INTO "evaluations" VALUES(1,'tiny-code-lm',3,2.5,1.79543730279653811461e+09);
CREATE TABLE positions (
        project TEXT PRIMARY KEY,
        position INTEGER NOT NULL CHECK (position >= 0),
        saved_at REAL NOT NULL
    ) STRICT;
INSERT INTO "positions" VALUES('tiny-code-lm',4096,1.79543730279251766198e+09);
CREATE TABLE reactions (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        rule TEXT NOT NULL,
        share REAL NOT NULL,
        seconds REAL NOT NULL CHECK (seconds >= 0)
    ) STRICT;
INSERT INTO "reactions" VALUES(1,1790000000.0,'input',0.2,0.08);
CREATE TABLE usage (
        project TEXT NOT NULL,
        quarter REAL NOT NULL,
        staying REAL NOT NULL,
        training REAL NOT NULL,
        computing REAL NOT NULL,
        joules REAL NOT NULL,
        measured REAL NOT NULL,
        added_at REAL NOT NULL,
        PRIMARY KEY (project, quarter)
    ) STRICT;
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
CREATE INDEX changes_by_time ON changes (at);
CREATE INDEX contributions_by_time ON contributions (settled_at);
CREATE INDEX usage_by_time ON usage (quarter);
CREATE INDEX usage_by_writing ON usage (added_at);
COMMIT;
PRAGMA user_version = 3;
