// The command line of `portcullis login` and `logout`.

import { type Command, Option } from 'commander'
import { collect } from '../../cli/command/flags.ts'
import type { CommandContext } from '../../cli/command/output.ts'
import { DEFAULT_REDIRECT } from '../core/login-spec.ts'

export function addLogin(program: Command, { out, err, now, done }: CommandContext): void {
  forLogin(program.command('login'))
    .description('log in at an OpenID provider; kubectl and other clients run this command as their credential plugin')
    .addOption(
      new Option('--flow <flow>', 'browser, device (a code for another device), or auto: the browser if there is one')
        .choices(['auto', 'browser', 'device'])
        .default('auto' as const),
    )
    .option('--browser-command <program>', "program that opens a URL, its last argument; default: the system's")
    .option('--token-dir <dir>', 'directory for the tokens; default: ~/.kube/cache/portcullis-login')
    .option('--timeout <duration>', 'how long to wait for the user to log in', '3m')
    .option('--force', 'log in even if there is a valid token', false)
    .addOption(
      new Option(
        '-o, --output <format>',
        'exec: an ExecCredential; auto: exec if a client runs this command, otherwise text',
      )
        .choices(['auto', 'exec', 'text'])
        .default('auto' as const),
    )
    .action(async (options) => done((await import('./login.ts')).login({ ...options, now, out, err })))
  program
    .command('logout')
    .description('revoke the refresh tokens of logins, and delete all their tokens')
    .option('--issuer <url>', 'only logins at this provider')
    .addOption(secretOption())
    .option('--issuer-ca-file <file>', "CA of the provider's certificate, PEM")
    .option('--token-dir <dir>', 'directory for the tokens; default: ~/.kube/cache/portcullis-login')
    .option('--no-browser', 'do not end the session in the browser')
    .option('--browser-command <program>', "program that opens a URL, its last argument; default: the system's")
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
    .addOption(new Option('--client-id <id>', 'client ID at the provider').env('PORTCULLIS_LOGIN_CLIENT_ID'))
    .addOption(secretOption())
    .option(
      '--scope <scope>',
      'scope to request; may be repeated. Default: openid, and those of offline_access, email, profile and groups that the provider supports',
      collect,
      [],
    )
    .option('--auth-param <name=value>', 'parameter added to the authorization request; may be repeated', collect, [])
    .option(
      '--redirect-url <url>',
      'loopback address to which the provider redirects the browser; without a port: any free port',
      DEFAULT_REDIRECT,
    )
    .option(
      '--issuer-ca-file <file>',
      "CA of the provider's certificate, PEM; default: those of this machine and of Node",
    )
}

function secretOption(): Option<'--client-secret <secret>'> {
  return new Option('--client-secret <secret>', 'secret of the client, if it has one').env(
    'PORTCULLIS_LOGIN_CLIENT_SECRET',
  )
}
