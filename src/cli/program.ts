// The command line: names, flags and help of every command. What serve and demo do comes from above (src/main.ts).

import { Command, Option } from 'commander'
import { certsClient, certsInit } from './certs.ts'
import { check } from './check.ts'
import { explain } from './explain.ts'
import { kubeconfig } from './kubeconfig.ts'

/** A setting of the gateway as a flag. */
export interface FlagSetting {
  readonly flag: string
  readonly argument: string
  readonly env: string
  readonly repeatable: boolean
  readonly defaultText: string
  readonly help: string
}

export interface ProgramParts {
  readonly version: string
  /** Flags of `serve`. */
  readonly settings: readonly FlagSetting[]
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly input: AsyncIterable<string>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly now: () => number
  /** Each resolves with the exit code. */
  serve(flags: Record<string, unknown>): Promise<number>
  demo(options: { real: boolean; listen: string; adminListen: string; dir: string }): Promise<number>
}

/** Runs one command line; resolves with the exit code. */
export async function runProgram(argv: readonly string[], parts: ProgramParts): Promise<number> {
  let code = 0
  const done = async (result: Promise<number> | number): Promise<void> => {
    code = await result
  }
  const program = new Command('portcullis')
    .description('Kubernetes-aware layer-7 API gateway in front of kube-apiservers')
    .version(parts.version)
    .showHelpAfterError('(portcullis help COMMAND shows what it takes)')
    .exitOverride()
    .configureOutput({ writeOut: parts.out, writeErr: parts.err })
  addServe(program, parts, done)
  addInspection(program, parts, done)
  addCredentials(program, parts, done)
  program
    .command('demo')
    .description('a gateway in front of two small clusters in this process, with things to try')
    .option('--real', 'in front of real kube-apiservers (built on first use; needs Go)', false)
    .option('--listen <host:port>', 'address of the gateway', '127.0.0.1:8443')
    .option('--admin-listen <host:port>', 'address of its admin listener', '127.0.0.1:9090')
    .option('--dir <dir>', 'where its files go, made anew', '.portcullis/demo')
    .action((options) => done(parts.demo(options)))
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    const exit = error instanceof Error ? Reflect.get(error, 'exitCode') : undefined
    if (typeof exit !== 'number') throw error
    return exit
  }
  return code
}

type Done = (result: Promise<number> | number) => Promise<void>

function addServe(program: Command, parts: ProgramParts, done: Done): void {
  const serve = program.command('serve').description('run the gateway')
  serve.option('--config <file>', 'YAML file of settings, keys as the flags in camelCase')
  for (const setting of parts.settings) {
    const defaultNote = setting.defaultText === '' ? '' : `; default ${setting.defaultText}`
    const option = new Option(`${setting.flag} ${setting.argument}`, `${setting.help} [${setting.env}${defaultNote}]`)
    if (setting.repeatable) option.argParser((value: string, all: string[] | undefined) => [...(all ?? []), value])
    serve.addOption(option)
  }
  serve.action((flags) => done(parts.serve(flags)))
}

function addInspection(program: Command, parts: ProgramParts, done: Done): void {
  program
    .command('check')
    .description('find every mistake in a directory of UpstreamCluster files')
    .argument('<dir>')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action((dir, options) => done(check({ dir, output: options.output, out: parts.out })))
  program
    .command('explain')
    .description('what the gateway would do with a request, or with every line of an access log')
    .argument('[method]', 'HTTP method')
    .argument('[target]', 'request target, such as /api/v1/pods')
    .requiredOption('--config-dir <dir>', 'directory of UpstreamCluster files')
    .option('--host <host>', 'host name that the client asks for')
    .option('--user <user>', 'user name')
    .option(
      '--group <group>',
      'group of the user; may be repeated',
      (value: string, all: string[]) => [...all, value],
      [],
    )
    .option('--user-agent <agent>', 'User-Agent of the client')
    .option('--address <ip>', 'address of the client')
    .option('--stdin', 'read requests from standard input: JSON lines in, JSON lines out', false)
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']).default('text'))
    .action((method: string | undefined, target: string | undefined, options, command: Command) => {
      if (!options.stdin && (method === undefined || target === undefined)) {
        command.error('error: give METHOD and TARGET, or --stdin', { exitCode: 1 })
      }
      const request = {
        method: method ?? '',
        target: target ?? '',
        ...(options.host === undefined ? {} : { host: options.host }),
        ...(options.user === undefined ? {} : { user: options.user }),
        ...(options.group.length === 0 ? {} : { groups: options.group }),
        ...(options.userAgent === undefined ? {} : { userAgent: options.userAgent }),
        ...(options.address === undefined ? {} : { remoteAddress: options.address }),
      }
      return done(
        explain({
          configDir: options.configDir,
          stdin: options.stdin,
          ...(options.stdin ? {} : { request }),
          output: options.output,
          input: parts.input,
          out: parts.out,
          err: parts.err,
          now: parts.now,
        }),
      )
    })
}

function collect(value: string, all: string[]): string[] {
  return [...all, value]
}

function addCredentials(program: Command, parts: ProgramParts, done: Done): void {
  const { out, err } = parts
  program
    .command('kubeconfig')
    .description('print a kubeconfig that points at the gateway')
    .argument('<cluster>', 'metadata.name of the UpstreamCluster')
    .requiredOption('--config-dir <dir>', 'directory of UpstreamCluster files')
    .option('--server <url>', 'how clients reach the gateway; default: the host name of the cluster, port 8443')
    .option('--path', 'address the cluster by /clusters/NAME')
    .option('--user-cert <file>', 'client certificate, PEM')
    .option('--user-key <file>', 'its private key, PEM')
    .option('--token-file <file>', 'bearer token')
    .option('--ca-file <file>', "CA of the gateway's serving certificate, PEM")
    .action((cluster: string, options) =>
      done(
        kubeconfig({
          cluster,
          configDir: options.configDir,
          ...(options.server === undefined ? {} : { server: options.server }),
          ...(options.path === undefined ? {} : { path: options.path }),
          ...(options.userCert === undefined ? {} : { userCertFile: options.userCert }),
          ...(options.userKey === undefined ? {} : { userKeyFile: options.userKey }),
          ...(options.tokenFile === undefined ? {} : { tokenFile: options.tokenFile }),
          ...(options.caFile === undefined ? {} : { caFile: options.caFile }),
          out,
          err,
        }),
      ),
    )
  const certs = program.command('certs').description('make the certificates of a gateway and its clients')
  certs
    .command('init')
    .description('a CA and the serving certificate of the gateway')
    .requiredOption('--dir <dir>', 'where the files go')
    .option('--host <host>', 'host name or address of the gateway; may be repeated', collect, [])
    .option('--force', 'overwrite what is there', false)
    .action((options) => done(certsInit({ dir: options.dir, hosts: options.host, force: options.force, out, err })))
  certs
    .command('client')
    .description('a client certificate')
    .requiredOption('--dir <dir>', 'where `certs init` put the CA')
    .requiredOption('--user <user>', 'user name')
    .option('--group <group>', 'group of the user; may be repeated', collect, [])
    .option('--uid <uid>', 'UID of the user')
    .option('--name <name>', 'name of the files; default: the user')
    .option('--days <days>', 'validity', Number)
    .option('--force', 'overwrite what is there', false)
    .action((options) =>
      done(
        certsClient({
          dir: options.dir,
          user: options.user,
          groups: options.group,
          ...(options.uid === undefined ? {} : { uid: options.uid }),
          ...(options.name === undefined ? {} : { name: options.name }),
          ...(options.days === undefined ? {} : { days: options.days }),
          force: options.force,
          out,
          err,
        }),
      ),
    )
}
