// Whether this machine has a browser for its user, and the program that opens it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasBrowser, openBrowser, openerOf } from './browser.ts'

test('a browser: on desktops, and not over SSH', () => {
  assert.ok(hasBrowser({}, 'darwin') && hasBrowser({}, 'win32'))
  assert.ok(!hasBrowser({}, 'linux'))
  for (const name of ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME']) {
    assert.ok(hasBrowser({ [name]: 'x' }, 'linux'))
    for (const ssh of ['SSH_CONNECTION', 'SSH_TTY']) assert.ok(!hasBrowser({ [name]: 'x', [ssh]: 'y' }, 'linux'))
  }
  assert.ok(!hasBrowser({ SSH_TTY: '/dev/pts/0' }, 'darwin'))
})

test('the program of the system, or the one that is named; no shell reads the URL', () => {
  assert.deepEqual(openerOf('', 'darwin'), ['open'])
  assert.deepEqual(openerOf('', 'linux'), ['xdg-open'])
  assert.deepEqual(openerOf('', 'win32'), ['rundll32', 'url.dll,FileProtocolHandler'])
  assert.deepEqual(openerOf('firefox', 'linux'), ['firefox'])
})

test('a program that fails, or is not there, has opened nothing; one that goes on running has', async () => {
  const url = new URL('https://login.example.com/auth?a=b&c=d')
  assert.equal(await openBrowser(url, '/none/browser'), false)
  assert.equal(await openBrowser(url, 'false'), false)
  assert.equal(await openBrowser(url, 'true'), true)
})
