import { pt as refusals } from "../../refusals/pt.js";
import type { Words } from "./en.js";

export const pt: Words = {
  locale: "pt",
  roles: { owner: "proprietário", member: "membro" },
  operatorView: "a visão do operador",

  signIn: {
    title: "Entrar",
    goingOnTo: "Para continuar em",
    name: "Nome de usuário",
    password: "Senha",
    action: "Entrar",
    wrong: "O nome de usuário ou a senha está errado.",
  },

  consent: {
    title: "Permitir o acesso",
    asked:
      "Uma aplicação pede para usar a interface de gestão (platform-api) em seu nome durante uma hora, com as suas permissões.",
    application: "Aplicação",
    user: "O seu nome",
    target: "Você continua em",
    allow: "Permitir",
    deny: "Negar",
  },

  profile: {
    title: "Perfil",
    signedInAs: "Sessão de",
    operatorView: "Visão do operador",
    signOut: "Sair",
    credentials: "As suas credenciais",
    credentialsNote: "Para programas que usam a interface de gestão em seu nome.",
    none: "Ainda nenhuma.",
    kinds: { service: "conta de serviço", user: "conta de usuário" },
    delete: "Apagar",
    deleteOf: (label) => `Apagar ${label}`,
    deleteNote: "Os programas que a usam deixam de poder obter tokens. Não pode ser anulado.",
    deleteYes: "Apagar para sempre",
    newCredential: "Nova credencial",
    label: "Rótulo",
    use: "Uso",
    service: "Conta de serviço (credenciais de cliente)",
    user: "Conta de usuário (código de autorização)",
    redirectUris: "Endereços de retorno, um por linha (conta de usuário)",
    create: "Criar",
    secretOnce: "Guarde este segredo agora: não será mostrado de novo.",
    clientId: "ID do cliente",
    clientSecret: "Segredo do cliente",
  },

  password: {
    heading: "Mudar a sua senha",
    note: "Pelo menos 10 caracteres. Os outros navegadores saem da sessão, e os tokens em seu nome terminam.",
    current: "Senha atual",
    chosen: "Nova senha",
    repeated: "Nova senha outra vez",
    action: "Mudar a senha",
    changed: "A sua senha foi mudada. Os outros navegadores saíram da sessão, e os tokens em seu nome terminaram.",
  },

  error: {
    title: "Algo deu errado",
    again: "Abrir o formulário de novo",
    failed: "O servidor falhou.",
    refused: "Este pedido não pode ser respondido. Diga a quem opera a aplicação de onde você veio:",
  },

  refusals,
};
