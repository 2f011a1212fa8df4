-- A file as its first version was, without the full-text index.
PRAGMA application_id = 1785554285;
PRAGMA user_version = 1;
CREATE TABLE memory (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    confidence REAL NOT NULL,
    evidence TEXT NOT NULL,
    stored TEXT NOT NULL,
    usage_count INTEGER NOT NULL DEFAULT 0,
    last_accessed TEXT
) STRICT;
CREATE TABLE memory_tag (
    folded TEXT NOT NULL,
    number INTEGER NOT NULL REFERENCES memory(number) ON DELETE CASCADE,
    PRIMARY KEY (folded, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tag_of ON memory_tag(number);
INSERT INTO memory (id, content, description, tags, confidence, evidence, stored) VALUES
    ('mem_1', 'tag first, then publish', 'how we release', '["Release"]', 0.5, '', '2026-11-24T01:12:30.123456Z');
INSERT INTO memory_tag VALUES ('release', 1);
