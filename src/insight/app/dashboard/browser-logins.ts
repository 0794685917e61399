// Logins of browsers at the admin listener, for the dashboard.

import { randomBytes } from 'node:crypto'
import type { CreateBrowserLogins } from '../../../admin/io/server/route.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { loginSessions } from '../../admin/dashboard/sessions.ts'
import { dashboardFiles } from '../../io/dashboard/dashboard-files.ts'
import { createLoginAttempts } from './login-attempts.ts'

const SESSION_ID_BYTES = 32

export const browserLogins: CreateBrowserLogins = ({ access, secure, failures }) =>
  loginSessions({
    access,
    files: dashboardFiles,
    secure,
    clock: systemClock,
    randomId: () => randomBytes(SESSION_ID_BYTES).toString('base64url'),
    attempts: createLoginAttempts(failures),
  })
