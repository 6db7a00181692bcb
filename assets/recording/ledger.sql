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
INSERT INTO "changes" VALUES(1,1.79544099382485270498e+09,'practice',1.0,'away','{"args": {}, "id": "rule.training_full_share"}','keep',1);
INSERT INTO "changes" VALUES(2,1.79544118245478606221e+09,'practice',0.0,'again','{"args": {}, "id": "timeline.reaching_swarm_again"}','keep',1);
INSERT INTO "changes" VALUES(3,1.79544120071145343778e+09,'practice',1.0,'away','{"args": {}, "id": "rule.training_full_share"}','keep',1);
INSERT INTO "changes" VALUES(4,1.79544122012203550336e+09,'practice',0.0,'paused','{"args": {"until": {"args": {"time": "13:55"}, "id": "hours.today"}}, "id": "rule.paused_until"}','keep',1);
INSERT INTO "changes" VALUES(5,1.79544125014902091028e+09,'practice',1.0,'away','{"args": {}, "id": "rule.training_full_share"}','keep',1);
INSERT INTO "changes" VALUES(6,1.79544139645407533649e+09,'practice',1.0,'input','{"args": {"share": 1.0}, "id": "rule.share_in_use"}','keep',1);
INSERT INTO "changes" VALUES(7,1.7954413964984648228e+09,'practice',0.2,'input','{"args": {"share": 0.2}, "id": "rule.share_in_use"}','keep',1);
INSERT INTO "changes" VALUES(8,1.79544151888495016099e+09,'',0.0,'','{"args": {}, "id": "timeline.not_project"}','keep',1);
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
INSERT INTO "contributions" VALUES(1,'practice','ed294ca2-0000',5,568,'confirmed','',1,1.79544099488520598412e+09,1.79544099962507843967e+09,1024);
INSERT INTO "contributions" VALUES(2,'practice','ed294ca2-0001',6,992,'lost','{"args": {}, "id": "round.no_other_peer_data_arrived"}',0,1.79544100063007903101e+09,1.79544102385285115242e+09,0);
INSERT INTO "contributions" VALUES(3,'practice','ed294ca2-0002',7,792,'confirmed','',1,1.79544102584931254389e+09,1.79544104569760894773e+09,1024);
INSERT INTO "contributions" VALUES(4,'practice','ed294ca2-0003',8,696,'confirmed','',1,1.79544104668918561937e+09,1.79544106229590749745e+09,1024);
INSERT INTO "contributions" VALUES(5,'practice','ed294ca2-0004',9,680,'confirmed','',1,1.79544106324920773503e+09,1.79544107733766746524e+09,1024);
INSERT INTO "contributions" VALUES(6,'practice','ed294ca2-0005',10,696,'confirmed','',1,1.79544107836701869957e+09,1.79544109213739347462e+09,1024);
INSERT INTO "contributions" VALUES(7,'practice','ed294ca2-0006',11,680,'confirmed','',1,1.79544109306437778468e+09,1.79544110949026346204e+09,1024);
INSERT INTO "contributions" VALUES(8,'practice','ed294ca2-0007',12,768,'confirmed','',1,1.79544111038604283329e+09,1.79544112263986539845e+09,1024);
INSERT INTO "contributions" VALUES(9,'practice','ed294ca2-0008',13,696,'confirmed','',1,1.79544112354374456406e+09,1.79544113563400626176e+09,1024);
INSERT INTO "contributions" VALUES(10,'practice','ed294ca2-0009',14,688,'confirmed','',1,1.79544113660099959378e+09,1795441150.12668,1024);
INSERT INTO "contributions" VALUES(11,'practice','ed294ca2-0010',15,664,'confirmed','',1,1.79544115113322353361e+09,1.79544116588259053228e+09,1024);
INSERT INTO "contributions" VALUES(12,'practice','ed294ca2-0011',16,728,'confirmed','',1,1.79544116680123233792e+09,1.79544117865328598025e+09,1024);
INSERT INTO "contributions" VALUES(13,'practice','ed294ca2-0012',17,120,'lost','{"args": {}, "id": "worker.worker_stopped_before_round"}',0,1.7954411796172351837e+09,1.79544118245701456075e+09,0);
INSERT INTO "contributions" VALUES(14,'practice','7d6d3a8f-0000',17,8,'confirmed','',1,1.7954412012226748466e+09,1.79544120245559048654e+09,1024);
INSERT INTO "contributions" VALUES(15,'practice','7d6d3a8f-0001',18,680,'confirmed','',1,1.79544120442518115041e+09,1.79544122011711239817e+09,1024);
INSERT INTO "contributions" VALUES(16,'practice','7d6d3a8f-0002',19,104,'confirmed','',1,1.795441251033185482e+09,1.79544125464492750161e+09,1024);
INSERT INTO "contributions" VALUES(17,'practice','7d6d3a8f-0003',20,736,'confirmed','',1,1.79544125560125970844e+09,1.79544126749790263182e+09,1024);
INSERT INTO "contributions" VALUES(18,'practice','7d6d3a8f-0004',21,848,'confirmed','',1,1.79544126850555896754e+09,1.79544127636617302894e+09,1024);
INSERT INTO "contributions" VALUES(19,'practice','7d6d3a8f-0005',22,824,'confirmed','',1,1.79544127733686089513e+09,1.79544128542949891092e+09,1024);
INSERT INTO "contributions" VALUES(20,'practice','7d6d3a8f-0006',23,720,'confirmed','',1,1.7954412864104778766e+09,1.79544129772975635524e+09,1024);
INSERT INTO "contributions" VALUES(21,'practice','7d6d3a8f-0007',24,792,'confirmed','',1,1.79544129869717621799e+09,1.79544130841159367559e+09,1024);
INSERT INTO "contributions" VALUES(22,'practice','7d6d3a8f-0008',25,864,'confirmed','',1,1.79544130944681096075e+09,1.79544131766632580754e+09,1024);
INSERT INTO "contributions" VALUES(23,'practice','7d6d3a8f-0009',26,720,'confirmed','',1,1.7954413185939333439e+09,1.7954413301335964203e+09,1024);
INSERT INTO "contributions" VALUES(24,'practice','7d6d3a8f-0010',27,720,'confirmed','',1,1.79544133114865422243e+09,1.79544134275700163838e+09,1024);
INSERT INTO "contributions" VALUES(25,'practice','7d6d3a8f-0011',28,736,'confirmed','',1,1.79544134377318906781e+09,1.79544135452301311488e+09,1024);
INSERT INTO "contributions" VALUES(26,'practice','7d6d3a8f-0012',29,704,'confirmed','',1,1.79544135544900131228e+09,1.79544136790124654774e+09,1024);
INSERT INTO "contributions" VALUES(27,'practice','7d6d3a8f-0013',30,736,'confirmed','',1,1.79544136876897883416e+09,1.79544138123551940918e+09,1024);
INSERT INTO "contributions" VALUES(28,'practice','7d6d3a8f-0014',31,704,'confirmed','',1,1.79544138219387364391e+09,1.79544139444695305821e+09,1024);
INSERT INTO "contributions" VALUES(29,'practice','7d6d3a8f-0015',32,256,'confirmed','',1,1.79544139542922711371e+09,1.79544141905187845231e+09,1024);
INSERT INTO "contributions" VALUES(30,'practice','7d6d3a8f-0016',33,45,'confirmed','',1,1.79544143469723081587e+09,1.79544145717669272424e+09,1024);
INSERT INTO "contributions" VALUES(31,'practice','7d6d3a8f-0017',34,24,'confirmed','',1,1.79544147375653839106e+09,1.79544149662002563471e+09,1024);
CREATE TABLE evaluations (
        number INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        loss REAL, -- NULL stands for "not a number", which SQLite does not have
        measured_at REAL NOT NULL
    ) STRICT;
INSERT INTO "evaluations" VALUES(1,'practice',5,3.92192810773849487304e+00,1.79544099409743523592e+09);
INSERT INTO "evaluations" VALUES(2,'practice',6,3.69047814607620239257e+00,1.7954410025056791306e+09);
INSERT INTO "evaluations" VALUES(3,'practice',7,3.7944240570068359375e+00,1.79544102446731925013e+09);
INSERT INTO "evaluations" VALUES(4,'practice',8,3.60944125056266784667e+00,1.79544104618144202234e+09);
INSERT INTO "evaluations" VALUES(5,'practice',9,3.58128660917282104492e+00,1.7954410626723701954e+09);
INSERT INTO "evaluations" VALUES(6,'practice',10,3.52941900491714477539e+00,1.79544107793963527677e+09);
INSERT INTO "evaluations" VALUES(7,'practice',11,3.42887067794799804687e+00,1.79544109261318778989e+09);
INSERT INTO "evaluations" VALUES(8,'practice',12,3.39194124937057495117e+00,1.79544110979435396196e+09);
INSERT INTO "evaluations" VALUES(9,'practice',13,3.38540339469909667968e+00,1.79544112306050634379e+09);
INSERT INTO "evaluations" VALUES(10,'practice',14,3.36618137359619140625e+00,1.79544113599133872988e+09);
INSERT INTO "evaluations" VALUES(11,'practice',15,3.33332467079162597656e+00,1.79544115065923380854e+09);
INSERT INTO "evaluations" VALUES(12,'practice',16,3.28744533658027648925e+00,1.79544116621124315259e+09);
INSERT INTO "evaluations" VALUES(13,'practice',17,3.23476105928421,1795441179.09416);
INSERT INTO "evaluations" VALUES(14,'practice',18,3.20528233051300048828e+00,1.79544120325598883626e+09);
INSERT INTO "evaluations" VALUES(15,'practice',19,3.17101764678955078125e+00,1.79544125031112813952e+09);
INSERT INTO "evaluations" VALUES(16,'practice',20,3.12063360214233398437e+00,1.79544126108511948583e+09);
INSERT INTO "evaluations" VALUES(17,'practice',21,3.12346947193145751953e+00,1.79544126943064641949e+09);
INSERT INTO "evaluations" VALUES(18,'practice',22,3.14191013574600219726e+00,1.79544127783305692671e+09);
INSERT INTO "evaluations" VALUES(19,'practice',23,3.14029848575592041015e+00,1.79544128588573431966e+09);
INSERT INTO "evaluations" VALUES(20,'practice',24,3.10473793745040893554e+00,1.79544129819704890256e+09);
INSERT INTO "evaluations" VALUES(21,'practice',25,3.08168548345565795898e+00,1.79544130890774679184e+09);
INSERT INTO "evaluations" VALUES(22,'practice',26,3.08777272701263427734e+00,1.79544131979310679428e+09);
INSERT INTO "evaluations" VALUES(23,'practice',27,3.07294535636901855468e+00,1.79544133054544377331e+09);
INSERT INTO "evaluations" VALUES(24,'practice',28,3.06780934333801269531e+00,1.79544134345274519924e+09);
INSERT INTO "evaluations" VALUES(25,'practice',29,3.07442700862884521484e+00,1.79544135480418157579e+09);
INSERT INTO "evaluations" VALUES(26,'practice',30,3.06544953584671,1.79544136822491693502e+09);
INSERT INTO "evaluations" VALUES(27,'practice',31,3.04700666666030883789e+00,1.79544138162237763402e+09);
INSERT INTO "evaluations" VALUES(28,'practice',32,3.04438084363937377929e+00,1.79544139491526460647e+09);
INSERT INTO "evaluations" VALUES(29,'practice',33,3.03740527480840682983e+00,1.79544143369368815426e+09);
INSERT INTO "evaluations" VALUES(30,'practice',34,3.03010931611061096191e+00,1.79544147037675189972e+09);
CREATE TABLE positions (
        project TEXT PRIMARY KEY,
        position INTEGER NOT NULL CHECK (position >= 0),
        saved_at REAL NOT NULL
    ) STRICT;
INSERT INTO "positions" VALUES('practice',18997,1.79544151888563203816e+09);
CREATE TABLE reactions (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        rule TEXT NOT NULL,
        share REAL NOT NULL,
        seconds REAL NOT NULL CHECK (seconds >= 0)
    ) STRICT;
INSERT INTO "reactions" VALUES(1,1.79544122027883052824e+09,'paused',0.0,1.56795024871826171875e-01);
INSERT INTO "reactions" VALUES(2,1.7954413996197814942e+09,'input',0.2,3.12131667137146);
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
INSERT INTO "usage" VALUES('practice',1795440600.0,5.06726259708404541031e+02,4.58442606925964355477e+02,1.35860341102000177211e+02,0.0,0.0,1.79544150055305743222e+09);
INSERT INTO "usage" VALUES('practice',1795441500.0,1.8332407236099243164e+01,1.6046076059341430664e+01,8.58944900000153666042e-02,0.0,0.0,1.79544151890642881392e+09);
CREATE INDEX contributions_pending ON contributions (project) WHERE state = 'pending';
CREATE TRIGGER settled_is_not_replaced BEFORE INSERT ON contributions
    WHEN EXISTS (
        SELECT 1 FROM contributions
        WHERE (number = NEW.number OR (project = NEW.project AND id = NEW.id)) AND state <> 'pending'
    ) BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER settled_is_not_deleted BEFORE DELETE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution is never deleted'); END;
CREATE TRIGGER contribution_keeps_its_name BEFORE UPDATE OF number, project, id, recorded_at ON contributions
    BEGIN SELECT RAISE(ABORT, 'a contribution keeps its project, id and time'); END;
CREATE INDEX evaluations_of_project ON evaluations (project);
CREATE INDEX changes_by_time ON changes (at);
CREATE INDEX contributions_by_time ON contributions (settled_at);
CREATE INDEX usage_by_time ON usage (quarter);
CREATE INDEX usage_by_writing ON usage (added_at);
CREATE TRIGGER settled_is_not_changed BEFORE UPDATE ON contributions
    WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a settled contribution never changes'); END;
COMMIT;
PRAGMA user_version = 4;
