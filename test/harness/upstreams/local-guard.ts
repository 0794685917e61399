// Connections of tests that have no gateway around them go to this machine.

import assert from 'node:assert/strict'
import { parseAllowedServer } from '../../../src/kit/core/dial/dial-rules.ts'
import { DialGuard } from '../../../src/kit/io/dial/dial-guard.ts'
import { LOOPBACK_SERVERS } from '../gateways/local-servers.ts'

/** Allows loopback addresses. */
export function localGuard(): DialGuard {
  return new DialGuard(LOOPBACK_SERVERS.map((text) => parseAllowedServer(text) ?? assert.fail(text)))
}
