import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Argument, Command, Option } from 'commander'
import { completionsOf, completionText } from './completion.ts'

const ignore = (): void => undefined

function program(): Command {
  const top = new Command('tool')
  top
    .command('switch')
    .description('throw a switch')
    .argument('<cluster>')
    .option('--mode <mode>', 'which way')
    .option('--shadow', 'refuse nothing')
    .option('-n, --namespace <namespace>', 'namespace')
    .addOption(new Option('-o, --output <format>').choices(['text', 'json']))
    .action(ignore)
  const keys = top.command('keys').description('keys')
  keys.command('make').description('a new\nkey').argument('<file>').action(ignore)
  keys.addCommand(new Command('secret'), { hidden: true })
  top
    .command('print')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
    .action(ignore)
  top.command('many').argument('<first>').argument('[clusters...]').option('--cert <file>').action(ignore)
  return top
}

async function text(...words: readonly string[]): Promise<string> {
  const clusters = async (flags: ReadonlyMap<string, string>): Promise<readonly string[]> =>
    ['prod', 'preview', 'staging'].map((name) => `${flags.get('--namespace') ?? ''}${name}`)
  return completionText(await completionsOf(program(), words, { values: { '--mode': ['Off', 'Freeze'] }, clusters }))
}

for (const [what, words, expected] of [
  ['commands, with what they do', ['s'], 'switch\tthrow a switch\n:4\n'],
  ['subcommands; hidden ones are not shown, and every value is one line', ['keys', ''], 'make\ta new key\n:4\n'],
  ['flags', ['switch', '--s'], '--shadow\trefuse nothing\n:4\n'],
  ['values of a flag', ['switch', '--mode', 'F'], 'Freeze\n:4\n'],
  ['values behind =', ['switch', '--mode=F'], '--mode=Freeze\n:4\n'],
  ['choices of a flag, by its short name', ['switch', '-o', ''], 'text\njson\n:4\n'],
  ['arguments that are clusters', ['switch', 'p'], 'prod\npreview\n:4\n'],
  ['behind flags with values and without', ['switch', '--mode', 'Off', '--shadow', 'st'], 'staging\n:4\n'],
  ['with the flags so far', ['switch', '-n', 'x', 'x'], 'xprod\nxpreview\nxstaging\n:4\n'],
  ['nothing more where the arguments end', ['switch', 'prod', ''], ':4\n'],
  ['arguments that go on', ['many', 'one', 'prod', 'st'], 'staging\n:4\n'],
  ['choices of an argument', ['print', 'b'], 'bash\n:4\n'],
  ['files for an argument', ['keys', 'make', ''], ':0\n'],
  ['files for a flag', ['many', '--cert', '/et'], ':0\n'],
  ['nothing behind an unknown flag', ['switch', '--unknown=x'], ':4\n'],
] as const) {
  test(what, async () => assert.equal(await text(...words), expected))
}

test('all commands for an empty word', async () => {
  assert.match(await text(''), /^switch\t.*\nkeys\tkeys\nprint\nmany\n:4\n$/)
})
