// There is one way to read what another machine answers (src/kube/core/answers/answer-reader.ts): whatever has a client of the network reads by it, or
// is named here with the reason why it need not.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const TOP = join(import.meta.dirname, '../..')

/** Sends requests, or opens connections to other machines. */
const CLIENT =
  /from '(?:undici|ioredis|node:http2)'|import \{[^}]*\b(?:get|request)\b[^}]*\} from 'node:https?'|(?<![.#\w])fetch\(|\b(?:sendAdmin|requestHealth|fetchBounded)\(|\.open\(\s*'(?:unary|watch|anonymous)'/
/** A whole body at once, however long it is. */
const WHOLE_BODY = /\b(?:body|response|reply|res)\.(?:text|json|bytes|arrayBuffer|blob|formData)\(/
const READER = /\bnew AnswerReader\(|\breadAnswer\(|\.countedText\(/

const PASSED_ON = 'what it answers is passed on to the client as it comes'
const REDIS = 'ioredis reads replies, and what is asked for is three numbers, or at most 1,000 names of replicas'
const COMMAND = 'a command, a process of its own; bounded'

/** Reasons why the answers are not read by AnswerReader. */
const OTHERS: Readonly<Record<string, string>> = {
  'src/insight/app/tap/tap-peers.ts': 'lines of at most 64 KiB, which are passed on as they are',
  'src/cli/client/admin-client.ts': COMMAND,
  'src/cli/probe.ts': COMMAND,
  'src/kit/io/dial/dial-guard.ts': 'opens connections alone',
  'src/kit/io/dial/http1-connector.ts': 'opens connections alone',
  'src/gateway/io/redis/client.ts': REDIS,
  'src/gateway/io/redis/limits.ts': REDIS,
  'src/gateway/io/upstream/upgrade-splice.ts': PASSED_ON,
  'src/cli/io/admin-request.ts': 'hands the answer on, whose every way of reading is bounded',
  'src/cli/io/health-request.ts': COMMAND,
  'src/cli/io/reachable-clusters.ts': COMMAND,
  'src/login/io/provider.ts': COMMAND,
}

const sources = globSync('src/**/*.{ts,tsx}', { cwd: TOP })
  .filter((file) => !/\.test\.ts$|^src\/(?:insight\/dashboard|demo)\//.test(file))
  .map((file) => ({ file, text: readFileSync(join(TOP, file), 'utf8') }))

test('whatever asks another machine reads the answer by AnswerReader, or is named with a reason', () => {
  const around = sources.filter(({ text }) => CLIENT.test(text) && !READER.test(text)).map(({ file }) => file)
  assert.deepEqual(around.sort(), Object.keys(OTHERS).sort())
})

test('nothing reads a whole body at once', () => {
  const found = sources.flatMap(({ file, text }) => WHOLE_BODY.exec(text)?.map((read) => `${file}: ${read}`) ?? [])
  assert.deepEqual(found, [])
})

test('what counts JSON is called by the reader alone, so that the bytes are bounded and charged, too', () => {
  const callers = sources.filter(({ text }) => /\bcountJson\(/.test(text)).map(({ file }) => file)
  assert.deepEqual(callers.sort(), ['src/kube/core/answers/answer-reader.ts', 'src/kube/core/answers/count-json.ts'])
})
