import { type CommandSpec, HELP } from './spec.js'

export const SHELLS = ['bash', 'zsh', 'fish'] as const

export const COMPLETION: CommandSpec = {
  name: 'completion',
  usage: `holdfast completion ${SHELLS.join('|')}`,
  summary: 'print a script that completes holdfast in your shell',
  positionals: ['shell'],
  required: 1,
  choice: SHELLS,
  wraps: false,
  options: [HELP],
  notes: ['Completes commands, options, files, and the keys that are held in the store that the line names.'],
  examples: [
    ['holdfast completion bash', 'in ~/.bashrc: eval "$(holdfast completion bash)"'],
    ['holdfast completion zsh', 'in ~/.zshrc, after compinit: eval "$(holdfast completion zsh)"'],
    ['holdfast completion fish', 'once: holdfast completion fish >~/.config/fish/completions/holdfast.fish'],
  ],
}
