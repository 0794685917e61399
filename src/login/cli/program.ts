// The command line of `portcullis login` and `logout`.

import { type Command, Option } from 'commander'
import { collect } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import { DEFAULT_REDIRECT } from '../core/login-spec.ts'

export function addLogin(program: Command, { out, err, now, done }: CommandContext): void {
  forLogin(program.command('login'))
    .description('log in at an OpenID provider; kubectl and other clients run it as their credential plugin')
    .addOption(
      new Option('--flow <flow>', 'browser, device (a code for another device), or auto: the browser if there is one')
        .choices(['auto', 'browser', 'device'])
        .default('auto' as const),
    )
    .option('--browser-command <program>', 'opens the URL that is its last argument; default: that of the system')
    .option('--token-dir <dir>', 'where the tokens are kept; default: ~/.kube/cache/portcullis-login')
    .option('--timeout <duration>', 'how long the user may take', '3m')
    .option('--force', 'log in even if there is a valid token', false)
    .addOption(
      new Option('-o, --output <format>', 'exec: an ExecCredential; auto: that, if a client runs this command')
        .choices(['auto', 'exec', 'text'])
        .default('auto' as const),
    )
    .action(async (options) => done((await import('./login.ts')).login({ ...options, now, out, err })))
  program
    .command('logout')
    .description('revoke the refresh tokens of logins, and forget their tokens')
    .option('--issuer <url>', 'only the logins at this provider')
    .addOption(secretOption())
    .option('--issuer-ca-file <file>', "CA of the provider's certificate, PEM")
    .option('--token-dir <dir>', 'where the tokens are kept; default: ~/.kube/cache/portcullis-login')
    .option('--no-browser', 'leave the session of the browser as it is')
    .option('--browser-command <program>', 'opens the URL that is its last argument; default: that of the system')
    .action(async (options) => done((await import('./logout.ts')).logout({ ...options, now, out, err })))
}

/** A command that is about a login, with the flags that name it. */
type LoginCommand = Command<
  [],
  {
    issuer?: string
    clientId?: string
    clientSecret?: string
    scope: string[]
    authParam: string[]
    redirectUrl: string
    issuerCaFile?: string
  }
>

function forLogin(command: Command): LoginCommand {
  return command
    .addOption(new Option('--issuer <url>', 'the OpenID provider').env('PORTCULLIS_LOGIN_ISSUER'))
    .addOption(new Option('--client-id <id>', 'ID of the client there').env('PORTCULLIS_LOGIN_CLIENT_ID'))
    .addOption(secretOption())
    .option(
      '--scope <scope>',
      'asked of the provider; may be repeated. Default: openid, and those of offline_access, email, profile and groups that it has',
      collect,
      [],
    )
    .option('--auth-param <name=value>', 'added to the request for a login; may be repeated', collect, [])
    .option(
      '--redirect-url <url>',
      'loopback address to which the browser brings the login; without a port: any',
      DEFAULT_REDIRECT,
    )
    .option(
      '--issuer-ca-file <file>',
      "CA of the provider's certificate, PEM; default: those of this machine and of Node",
    )
}

function secretOption(): Option<'--client-secret <secret>'> {
  return new Option('--client-secret <secret>', 'of a client that has one').env('PORTCULLIS_LOGIN_CLIENT_SECRET')
}
