import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { terminalFilter } from './terminal-filter.ts'

const ESC = '\x1b'
/** What a terminal gets, and what `--text` prints. */
const ROWS: readonly (readonly [name: string, output: string, terminal: string, text: string])[] = [
  ['text', 'a\tbé漢😀\r\n', 'a\tbé漢😀\r\n', 'a\tbé漢😀\n'],
  ['colours', `${ESC}[1;38:5:4mred${ESC}[0m`, `${ESC}[1;38:5:4mred${ESC}[0m`, 'red'],
  ['a cursor that moves', `${ESC}[2J${ESC}[1;1H${ESC}[K.`, `${ESC}[2J${ESC}[1;1H${ESC}[K.`, '.'],
  ['the alternate screen', `${ESC}[?1049h${ESC}[?25l`, `${ESC}[?1049h${ESC}[?25l`, ''],
  ['line drawing', `${ESC}(0qq${ESC}(B\x0e\x0f`, `${ESC}(0qq${ESC}(B\x0e\x0f`, 'qq'],
  ['saved cursor', `${ESC}7${ESC}8${ESC}M`, `${ESC}7${ESC}8${ESC}M`, ''],
  ['progress', '1%\r2%\r\n', '1%\r2%\r\n', '1%\n2%\n'],
  // The clipboard.
  ['OSC 52, BEL', `a${ESC}]52;c;cm0gLXJm\x07b`, 'ab', 'ab'],
  ['OSC 52, ST', `a${ESC}]52;c;cm0gLXJm${ESC}\\b`, 'ab', 'ab'],
  ['OSC 52, C1', 'a\x9d52;c;cm0gLXJm\x9cb', 'a52;c;cm0gLXJmb', 'a52;c;cm0gLXJmb'],
  // Titles, links, notifications, files.
  ['a title', `${ESC}]0;rm -rf ~\x07`, '', ''],
  ['a link', `${ESC}]8;;http://x${ESC}\\here${ESC}]8;;${ESC}\\`, 'here', 'here'],
  ['iTerm', `${ESC}]1337;File=x:AAAA\x07.`, '.', '.'],
  // What a terminal answers, as if it were typed.
  ['a report of the title', `${ESC}[21t.`, '.', '.'],
  ['device attributes', `${ESC}[c${ESC}[0c${ESC}[>c${ESC}[=c.`, '.', '.'],
  ['device status', `${ESC}[5n${ESC}[6n${ESC}[?6n.`, '.', '.'],
  ['modes, version, keyboard', `${ESC}[?1$p${ESC}[>q${ESC}[?u${ESC}[x.`, '.', '.'],
  ['answerback', '\x05.', '.', '.'],
  ['DCS', `${ESC}P$q"p${ESC}\\${ESC}P+q544e${ESC}\\.`, '.', '.'],
  // What changes what is typed later.
  ['the mouse', `${ESC}[?1000h${ESC}[?1006h${ESC}[?1004h${ESC}[?2004h.`, '.', '.'],
  ['the keyboard', `${ESC}[2h${ESC}=${ESC}>${ESC}[?1h${ESC}[>4;2m.`, '.', '.'],
  ['printing', `${ESC}[5i${ESC}[?5i.`, '.', '.'],
  ['a hidden mode behind a permitted one', `${ESC}[?25;1000h.`, '.', '.'],
  ['a reset, 7-bit controls, alignment', `${ESC}c${ESC} F${ESC}#8.`, '.', '.'],
  ['other controls', 'a\x00\x01\x7f\x80\x9b21t\b.', 'a21t\b.', 'a21t.'],
  ['text that is reordered', 'a\u202eb\u2066c\u200f', 'abc', 'abc'],
  // Nothing hides behind what does not end.
  ['a string and a line', `${ESC}]0;hidden\nshown`, '\nshown', '\nshown'],
  ['a string and a sequence', `${ESC}]0;x${ESC}[1mshown`, `${ESC}[1mshown`, 'shown'],
  ['a string that is too long', `${ESC}]0;${'x'.repeat(5000)}`, 'x'.repeat(905), 'x'.repeat(905)],
  ['a long sequence', `${ESC}[${'1'.repeat(70)}m`, '11111m', '11111m'],
  ['a sequence within a sequence', `${ESC}[1${ESC}[2J.`, `${ESC}[2J.`, '.'],
  ['a sequence that a control ends', `${ESC}[1\x18m${ESC}]x\x1a.`, 'm.', 'm.'],
]

for (const [name, output, terminal, text] of ROWS) {
  test(name, () => {
    for (const [isPlain, wanted] of [
      [false, terminal],
      [true, text],
    ] as const) {
      assert.equal(terminalFilter(isPlain).filter(output), wanted)
      const piecemeal = terminalFilter(isPlain)
      // As UTF-16: surrogates apart, too.
      assert.equal(
        Array.from({ length: output.length }, (_, at) => piecemeal.filter(output[at] ?? '')).join(''),
        wanted,
      )
    }
  })
}

test('whatever is printed: no terminal gets anything but drawing, and text has no control characters', () => {
  const tokens = fc.constantFrom(
    ESC,
    '[',
    ']',
    '52;c;',
    '21t',
    '6n',
    'm',
    '?1000h',
    '\\',
    '\x07',
    '\x9d',
    'P',
    '0',
    ';',
    '\n',
    'é',
  )
  const output = fc
    .array(fc.oneof(tokens, fc.string({ maxLength: 3 })), { maxLength: 30 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(output, (given) => {
      const drawn = terminalFilter(false).filter(given).replaceAll(ESC, '␛')
      // An independent reading of what is left: each ESC begins a permitted sequence.
      const rest = drawn.replaceAll(/␛(?:[78DEHM]|[()][0B]|\[[\d;:?]*[A-HJKLMPSTXZ@`abdefghlmrsu])/g, '')
      assert.doesNotMatch(
        rest
          .replaceAll(/[\b\t\n\v\f\r]/g, '')
          .replaceAll('\x07', '')
          .replaceAll('\x0e', '')
          .replaceAll('\x0f', ''),
        /\p{Cc}|␛/u,
      )
      assert.doesNotMatch(drawn, /␛\[\?[\d;]*1000|␛\[[\d;]*[ntc]/)
      assert.doesNotMatch(
        terminalFilter(true)
          .filter(given)
          .replaceAll(/[\t\n]/g, ''),
        /\p{Cc}/u,
      )
    }),
  )
})
