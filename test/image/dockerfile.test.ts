// The Dockerfile by its text: what a build that happens to work would not show.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../..')
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')
/** Instructions without comments, continued lines joined. */
const lines = read('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, '')
  .split('\n')
  .filter((line) => line !== '')
const PACKAGE = JSON.parse(read('package.json'))

function defaultOf(arg: string): string {
  return lines.find((line) => line.startsWith(`ARG ${arg}=`))?.slice(`ARG ${arg}=`.length) ?? ''
}

test('its Node is the one that package.json pins, its version the package’s', () => {
  assert.equal(defaultOf('NODE'), `docker.io/library/node:${PACKAGE.devDependencies.node}-bookworm-slim`)
  assert.equal(defaultOf('PORTCULLIS_VERSION'), PACKAGE.version)
})

test('the base is distroless for users that are not root; each stage begins with what an ARG names', () => {
  assert.match(defaultOf('BASE'), /^gcr\.io\/distroless\/cc-debian12:nonroot(?:@sha256:[0-9a-f]{64})?$/)
  for (const line of lines.filter((one) => one.startsWith('FROM ')))
    assert.match(line, /^FROM \$\{[A-Z]+\}(?: AS \w+)?$/)
})

test('no instruction needs a shell, none checks health', () => {
  for (const line of lines.filter((one) => /^(?:RUN|CMD|ENTRYPOINT) /.test(one))) assert.match(line, /^[A-Z]+ \["/)
  assert.deepEqual(
    lines.filter((line) => /^(?:HEALTHCHECK|SHELL|ADD|ONBUILD) /.test(line)),
    [],
  )
})

test('the build context has what is built from, and nothing that a checkout holds beside it', () => {
  const ignore = read('.dockerignore').split('\n')
  assert.equal(
    ignore.find((line) => !line.startsWith('#')),
    '*',
    'everything is left out first',
  )
  const allowed = ignore.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  const present = readdirSync(ROOT)
  for (const name of allowed) assert.ok(present.includes(name), `.dockerignore lets in ${name}, which does not exist`)
  for (const name of ['node_modules', '.git', '.portcullis', 'data', 'dist', 'test', 'bench']) {
    assert.ok(!allowed.includes(name), name)
  }
})
