// Access to /metrics on the health listener: clients on this machine, holders of the token from a file, or users allowed to `get /metrics` by the API
// server that holds the objects.

import { accessReviews, type PostReview, refusal } from '../../admin/app/access/review-access.ts'
import type { MetricsAccess } from '../../admin/io/server/health-server.ts'
import type { Logger } from '../../kit/api/ports.ts'
import { bearerOf, isSameToken } from '../../process/certificates/bearer-token.ts'

const NEEDED = { path: '/metrics', verb: 'get' } as const

export const OPEN_ACCESS: MetricsAccess = () => Promise.resolve(undefined)

/** Refuses everything until access is configured. */
export const NO_ACCESS: MetricsAccess = () => {
  const message =
    '/metrics is not shown to other machines: start with --metrics-token-file, or read it from --admin-listen'
  return Promise.resolve(refusal(403, message))
}

/** @param expected the token in force, read each time */
export function tokenAccess(expected: () => string): MetricsAccess {
  return (authorization) => {
    const given = bearerOf(authorization)
    const same = given !== undefined && isSameToken(given, expected())
    return Promise.resolve(same ? undefined : refusal(401, 'needs the bearer token of --metrics-token-file'))
  }
}

/** Results are cached; reviews are rate-limited, and addresses take turns. */
export function reviewAccess(post: PostReview, monotonic: () => number, log: Logger): MetricsAccess {
  const reviews = accessReviews(post, monotonic, log, NEEDED.path)
  return async (authorization, remoteAddress) => {
    const token = bearerOf(authorization)
    if (token === undefined) return refusal(401, 'needs a bearer token that the cluster of the objects accepts')
    const user = await reviews.who(token, remoteAddress)
    return 'code' in user ? user : reviews.may(user, NEEDED, remoteAddress)
  }
}
