// Opens a store's database: single process, WAL, every commit on disk, a schema this version knows, the right key.

import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { createPrivateFile, type FileLock } from '../../../kit/io/locks/file-lock.ts'
import { makePrivateDirectory } from '../../../pki/io/pki-files.ts'
import { type ObjectBodies, SealBroken } from './bodies.ts'
import { openingFailure } from './errors.ts'
import { syncDirectory } from './key.ts'
import { lockStore } from './lock.ts'
import { sealPlainBodies } from './reseal.ts'
import { columnBody, columnInteger, onlyRow, singleValue } from './values.ts'

export const IN_MEMORY = ':memory:'
/** Incremented with every table change that an older version could not read. */
const SCHEMA_VERSION = 2
/** In the file header, "Prtc": distinguishes a store from other SQLite databases (sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x50727463
const KEY_CHECK = 'portcullis store key'

/** The store was created, or last re-encrypted, with another key. */
export class WrongStoreKey extends UserError {}

/** How long another program that reads the store may block us. */
const BUSY_TIMEOUT_MS = 2_000

/**
 * Names are compared by their UTF-8 bytes (BINARY). A body is one state of one object, sealed (BLOB) or not (TEXT), with the revision that wrote it;
 * a deletion writes none. `previous` is the revision of the state before the event, 0 = none.
 */
const TABLES = `
CREATE TABLE store (
  id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, revision INTEGER NOT NULL, oldest INTEGER NOT NULL, key_check BLOB
) STRICT;
CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (resource, namespace, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE bodies (revision INTEGER PRIMARY KEY, body ANY NOT NULL) STRICT;
CREATE TABLE events (
  revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  deleted INTEGER NOT NULL, previous INTEGER NOT NULL, previous_bytes INTEGER NOT NULL, time INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (1, ${SCHEMA_VERSION}, 1, 0, NULL);
PRAGMA application_id = ${APPLICATION_ID};
`

interface OpenDatabase {
  readonly db: DatabaseSync
  /** undefined for an in-memory store. */
  readonly lock: FileLock | undefined
}

/**
 * @param maxBytes limit of the file's size; undefined = none
 * @param bodies with the store's key
 * @param held the lock, if the caller already has it: an opened store takes it over, otherwise the caller keeps it
 * @throws {UserError}
 */
export function openDatabase(
  file: string,
  bodies: ObjectBodies,
  hasKey: boolean,
  maxBytes: number | undefined,
  held?: FileLock,
): OpenDatabase {
  let lock = held
  let db: DatabaseSync | undefined
  try {
    if (file !== IN_MEMORY) {
      makePrivateDirectory(dirname(file))
      lock ??= lockStore(file)
      createPrivateFile(file)
      syncDirectory(dirname(file))
    }
    db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
    configure(db, maxBytes)
    if (file !== IN_MEMORY && singleValue(db, 'PRAGMA journal_mode') !== 'wal') {
      throw new UserError(`the file system of ${file} cannot keep a store safely`, 'name a file on a local disk')
    }
    const found = prepareSchema(db, file)
    checkKey(db, file, bodies, hasKey)
    if (found < SCHEMA_VERSION) upgrade(db, bodies, hasKey)
    return { db, lock }
  } catch (error) {
    db?.close()
    if (held === undefined) lock?.release()
    throw openingFailure(error, file)
  }
}

function configure(db: DatabaseSync, maxBytes: number | undefined): void {
  // FULL: a commit returns once the log is on disk, not only when it is checkpointed. fullfsync: macOS only.
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;
    PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = 0; PRAGMA journal_size_limit = 67108864`)
  if (maxBytes === undefined) return
  const pageSize = Number(singleValue(db, 'PRAGMA page_size'))
  db.exec(`PRAGMA max_page_count = ${Math.floor(maxBytes / pageSize)}`)
}

/** @returns the store's previous schema version */
function prepareSchema(db: DatabaseSync, file: string): number {
  db.exec('BEGIN IMMEDIATE')
  const application = singleValue(db, 'PRAGMA application_id')
  const tables = singleValue(db, 'SELECT count(*) FROM sqlite_schema')
  if (application === 0 && tables === 0) {
    db.exec(TABLES)
  } else if (application !== APPLICATION_ID) {
    throw new UserError(
      `${file} is an SQLite database of another program`,
      'name the file of a store, or one that does not exist yet',
    )
  }
  const found = columnInteger(onlyRow(db.prepare('SELECT schema FROM store')), 'schema')
  if (found > SCHEMA_VERSION) {
    throw new UserError(
      `the store ${file} was written by a newer version of Portcullis (schema ${found}, this version knows ${SCHEMA_VERSION})`,
      'run that version or a newer one, or restore a backup made by this one',
    )
  }
  db.exec('COMMIT')
  return found
}

/** Version 1 stored UpstreamClusters unencrypted, including their keys and tokens. */
function upgrade(db: DatabaseSync, bodies: ObjectBodies, hasKey: boolean): void {
  // Overwrites replaced data: it was unencrypted.
  db.exec('PRAGMA secure_delete = 1; BEGIN IMMEDIATE')
  const sealed = hasKey ? sealPlainBodies(db, bodies) : 0
  db.exec(`UPDATE store SET schema = ${SCHEMA_VERSION}; COMMIT; PRAGMA secure_delete = 0`)
  // Also overwrites what earlier versions of these objects left in free pages and in the log.
  if (sealed === 0) return
  try {
    db.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // No room for a second copy: failing to open the store would be worse.
  }
}

/** Binds the store to this key. */
export function sealKeyCheck(db: DatabaseSync, bodies: ObjectBodies): void {
  db.prepare('UPDATE store SET key_check = ?').run(bodies.seal(KEY_CHECK, KEY_CHECK))
}

/** A store contains a text sealed with its key, so that a wrong key is detected at startup and not at the first Secret. */
function checkKey(db: DatabaseSync, file: string, bodies: ObjectBodies, hasKey: boolean): void {
  const sealed = columnBody(onlyRow(db.prepare('SELECT key_check FROM store')), 'key_check')
  if (!hasKey) {
    if (sealed === undefined) return
    throw new UserError(
      `the Secrets in the store ${file} are encrypted, and no key was given`,
      'name the key file that the store was made with',
    )
  }
  if (sealed === undefined) {
    sealKeyCheck(db, bodies)
    return
  }
  try {
    if (typeof sealed !== 'string' && bodies.open(KEY_CHECK, sealed) === KEY_CHECK) return
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error
  }
  throw new WrongStoreKey(
    `the key given is not the one that the Secrets in the store ${file} are encrypted with`,
    'name the key file that the store was made with (a restored store needs the key file of its time)',
  )
}
