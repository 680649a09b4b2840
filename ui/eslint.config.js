import hooks from 'eslint-plugin-react-hooks'
import typescript from 'typescript-eslint'

export default typescript.config(
  { ignores: ['src/gen/**', 'node_modules/**'] },
  ...typescript.configs.strict,
  {
    files: ['**/*.{ts,tsx}'],
    plugins: { 'react-hooks': hooks },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      eqeqeq: 'error',
      'no-console': 'error',
      // The content security policy and these rules keep text from becoming code or markup.
      'no-eval': 'error',
      'no-new-func': 'error',
      'no-restricted-syntax': [
        'error',
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: 'Render text as text.' },
        {
          selector: "CallExpression[callee.object.name='JSON'][callee.property.name='parse']",
          message: 'JSON.parse loses digits; use readJson of api/json.',
        },
      ],
      'no-restricted-globals': ['error', { name: 'sessionStorage', message: 'Preferences are in kit/preferences.' }],
    },
  },
  { files: ['e2e/**', 'build/**'], rules: { 'no-restricted-syntax': 'off' } },
)
