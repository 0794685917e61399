// Names, comments and messages use the words of Kubernetes, HTTP and the RFCs. Words that once stood for them here do not return.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** What is matched (identifiers are split into words first), and what to write instead. */
const BANNED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bmistakes?\b/, 'error'],
  [/\bdoubt(s|ed|ful)?\b/, 'warning, uncertain'],
  [/\bmend(s|ed|ing)?\b/, 'fix'],
  [/\bjudg(e|es|ed|ing|ement|ements)\b/, 'evaluate, decide, check'],
  // A seat is what priority and fairness counts; the place of a thread is none.
  [/\b(worker|thread|gateway) seats?\b|\bseats? (of|for) (a |the )?(worker|thread)/, 'worker slot'],
  [/\bhurry\b/, 'probeNow'],
  [/\bsendings\b/, 'attempts'],
  [/\banew\b/, 'again, new'],
  [/\bwhom\b/, 'who, the user that'],
  [/\bstands? beside\b/, 'with, next to; may not be specified when'],
  [/\bso long(?! as)\b/, 'this long, as long as'],
  [/\brequestor\b/, 'requester, original user'],
  [/\bof theirs\b/, 'their'],
  [/\bwithout a word\b/, 'silently'],
  [/(?<!there )\b(is|are) no (?!longer\b|more\b|finer\b)/, 'is not a, must be a'],
  [/\b(heard|lost) ?\(/, 'onMessage, onExit'],
  [/\b[a-z]+ parts (?=[{(]|extends\b)/, '...Deps or ...Options'],
]

/** Names and comments of tests and benches, too: what is meant is a user, a client, a server, a process. */
const BANNED_EVERYWHERE: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b(nobody|somebody|everybody|anybody)\b/, 'no user, another client, every request: say which'],
  [/\bwho(m|ever|mever)\b/, 'the user that, a client that'],
  [
    /\bwho (asks|has|holds|uses|pays|sends) (the )?(most|least|for)\b/,
    'the user with most, the source that is charged',
  ],
  [/\b(his|him|himself)\b/, 'its, their'],
]

/** A comment names the thing: "The port of the listener", not "Of the listener". */
const FRAGMENT = /(\/\*\*|\/\/) Of /

/** A value of status.gateways[].podProtection.state, which clients may read, and a column of kube-apiserver. */
const API_VALUE = /\bJudging\b|'Requestor'/g

const ROOT = join(import.meta.dirname, '../..')
const STRING = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g

test('words that had to be decoded do not come back', () => {
  const found: string[] = []
  for (const file of filesOf('src')) {
    for (const [i, line] of linesOf(file)) {
      found.push(...hits(BANNED, line.replaceAll(API_VALUE, '')).map((hit) => `${file}:${i + 1}: ${hit}`))
    }
  }
  assert.deepEqual(found, [])
})

test('names and comments say which user, client, server or process they mean', () => {
  const found: string[] = []
  for (const file of ['src', 'test', 'bench', 'build'].flatMap(filesOf)) {
    if (file === 'test/repository/words.test.ts') continue
    for (const [i, line] of linesOf(file)) {
      found.push(...hits(BANNED_EVERYWHERE, withoutStrings(line)).map((hit) => `${file}:${i + 1}: ${hit}`))
      if (FRAGMENT.test(line)) found.push(`${file}:${i + 1}: "Of ...": write what it is`)
    }
  }
  assert.deepEqual(found, [])
})

function filesOf(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).sort()
  return names.filter((name) => /\.(ts|tsx|go|md)$/.test(name)).map((name) => `${folder}/${name}`)
}

function linesOf(file: string): ArrayIterator<[number, string]> {
  return readFileSync(join(ROOT, file), 'utf8').split('\n').entries()
}

/** Texts are read by users, and names in them may be anything. */
function withoutStrings(line: string): string {
  const comment = /^\s*\*|\/\*\*|(?<![:'"`])\/\/ /.exec(line)
  const code = comment === null ? line : line.slice(0, comment.index)
  return code.replaceAll(STRING, "''") + line.slice(code.length)
}

/** Identifiers are split into words first. */
function hits(banned: typeof BANNED, line: string): string[] {
  const words = line
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
  return banned.flatMap(([pattern, instead]) => {
    const hit = pattern.exec(words)?.[0]
    return hit === undefined ? [] : [`"${hit.trim()}": write ${instead}`]
  })
}
