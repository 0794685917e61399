// Names, comments and messages in src/ use the words of Kubernetes, HTTP and the RFCs. Words that once stood for them here do not return.

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

/** A value of status.gateways[].podProtection.state, which clients may read. */
const API_VALUE = /\bJudging\b/g

const SRC = join(import.meta.dirname, '../../src')

test('words that had to be decoded do not come back', () => {
  const found: string[] = []
  for (const file of readdirSync(SRC, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!/\.(ts|md)$/.test(file)) continue
    for (const [i, line] of readFileSync(join(SRC, file), 'utf8').split('\n').entries()) {
      const words = line
        .replaceAll(API_VALUE, '')
        .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
        .replaceAll('_', ' ')
        .toLowerCase()
      for (const [pattern, instead] of BANNED) {
        const hit = pattern.exec(words)?.[0]
        if (hit !== undefined) found.push(`src/${file}:${i + 1}: "${hit.trim()}": write ${instead}`)
      }
    }
  }
  assert.deepEqual(found, [])
})
