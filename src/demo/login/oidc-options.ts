// What oidc-provider is in the demo: its client, its users, its pages, and how long logins are valid.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { codePage, confirmCodePage, logoutPage, PAGE_HEADERS, page } from './pages.ts'

interface LoginUser {
  readonly groups: readonly string[]
  /** How the login page introduces them. */
  readonly text: string
}

/** The client that all users of the clusters share. */
export const LOGIN_CLIENT = 'kubernetes'

/** By name. */
export const LOGIN_USERS: ReadonlyMap<string, LoginUser> = new Map([
  [
    'alice',
    { groups: ['developers'], text: 'a developer, who may read, and write in the namespaces shop and default' },
  ],
  ['bob', { groups: ['support'], text: 'in support, who may only read' }],
])

/** Short, so that a renewal can be seen. */
const ID_TOKEN_TTL_S = 600
const SESSION_TTL_S = 86_400
/** The time that a user may take. */
const LOGIN_TTL_S = 600
const SCOPES = 'openid offline_access email groups'
export const SIGNATURE = 'ES256'

/** oidc-provider, as far as it is used here: the package has no types. */
export interface OidcProvider {
  callback(): (...exchange: Parameters<RequestListener>) => Promise<void>
  interactionDetails(...exchange: Parameters<RequestListener>): Promise<unknown>
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  readonly Grant: new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> }
  /** Koa prints no errors. */
  silent: boolean
}

interface OidcContext {
  body: string
  set(headers: object): void
  readonly oidc: {
    readonly provider: OidcProvider
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
  }
}

function showPage(context: OidcContext, html: string): void {
  context.set(PAGE_HEADERS)
  context.body = html
}

/** Without its keys. */
export const OIDC_OPTIONS = {
  clients: [
    {
      client_id: LOGIN_CLIENT,
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      // With any port (RFC 8252, section 7.3).
      redirect_uris: ['http://127.0.0.1/callback'],
      id_token_signed_response_alg: SIGNATURE,
    },
  ],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'offline_access'],
  clientBasedCORS: () => false,
  // In the ID token, as API servers want them.
  conformIdTokenClaims: false,
  issueRefreshToken: () => true,
  features: {
    devInteractions: { enabled: false },
    revocation: {
      enabled: true,
      allowedPolicy: (_: unknown, client: { readonly clientId: string }, token: { readonly clientId: string }) =>
        token.clientId === client.clientId,
    },
    deviceFlow: {
      enabled: true,
      userCodeInputSource: (context: OidcContext, form: string, _: unknown, error: unknown) =>
        showPage(context, codePage(form, error !== undefined)),
      userCodeConfirmSource: (context: OidcContext, form: string, _client: unknown, _device: unknown, code: string) =>
        showPage(context, confirmCodePage(form, code)),
      successSource: (context: OidcContext) =>
        showPage(context, page('Logged in', 'You can close this page and go back to the terminal.')),
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (context: OidcContext, form: string) => showPage(context, logoutPage(form)),
      postLogoutSuccessSource: (context: OidcContext) =>
        showPage(context, page('Logged out', 'You can close this page.')),
    },
  },
  renderError: (context: OidcContext, { error_description: text = '' }: { readonly error_description?: string }) =>
    showPage(context, page('Not logged in', text)),
  interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
  ttl: {
    ...{ AccessToken: ID_TOKEN_TTL_S, IdToken: ID_TOKEN_TTL_S, Interaction: LOGIN_TTL_S, DeviceCode: LOGIN_TTL_S },
    ...{ Grant: SESSION_TTL_S, RefreshToken: SESSION_TTL_S, Session: SESSION_TTL_S },
  },
  findAccount: (_: unknown, sub: string) => {
    const user = LOGIN_USERS.get(sub)
    if (user === undefined) return undefined
    const claims = { sub, email: `${sub}@example.com`, email_verified: true, groups: user.groups }
    return { accountId: sub, claims: () => claims }
  },
  // The user is not asked whether the client may know who they are.
  async loadExistingGrant({ oidc }: OidcContext): Promise<object> {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
    grant.addOIDCScope(SCOPES)
    await grant.save()
    return grant
  },
}
