import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCredentials } from './s3-files.ts'

const KEYS = 'aws_access_key_id = AKIA\naws_secret_access_key=a+/b='

test('the profile default of a shared credentials file', () => {
  const found = { accessKeyId: 'AKIA', secretAccessKey: 'a+/b=', sessionToken: '' }
  assert.deepEqual(parseCredentials(`[default]\n${KEYS}\n`), found)
  assert.deepEqual(
    parseCredentials(`# a comment\r\n[ default ]\r\n${KEYS.replace('\n', '\r\n')}\r\nregion = x\r\n`),
    found,
  )
  const temporary = `[other]\naws_access_key_id = OTHER\n[default]\n${KEYS}\nAWS_SESSION_TOKEN = token==\n[more]\naws_access_key_id = MORE`
  assert.deepEqual(parseCredentials(temporary), { ...found, sessionToken: 'token==' })
  for (const text of ['', KEYS, `[other]\n${KEYS}`, '[default]\naws_access_key_id = AKIA', '[default]\n; nothing']) {
    assert.equal(parseCredentials(text), undefined, text)
  }
})
