import { pt as refusals } from "../../refusals/pt.js";
import type { Words } from "./en.js";

export const pt: Words = {
  locale: "pt-BR",
  roles: { owner: "proprietário", member: "membro" },
  operatorView: "a visão do operador",

  signIn: {
    title: "Entrar",
    goingOnTo: "Continuar em",
    name: "Nome de usuário",
    password: "Senha",
    action: "Entrar",
    wrong: "O nome de usuário ou a senha está incorreto.",
  },

  consent: {
    title: "Permitir o acesso",
    asked:
      "Uma aplicação pede para usar a interface de gerenciamento (platform-api) em seu nome por uma hora, com as suas permissões.",
    may: {
      owner:
        "A aplicação poderá então fazer tudo o que você pode fazer como proprietário: ver sessões e perfis, apagar impressões de voz e gerenciar aplicações, usuários e chaves.",
      member: "A aplicação poderá então ver e alterar suas credenciais.",
    },
    application: "Aplicação",
    user: "Seu nome",
    target: "Continuar em",
    allow: "Permitir",
    deny: "Negar",
  },

  profile: {
    title: "Perfil",
    signedInAs: "Conectado como",
    operatorView: "Visão do operador",
    signOut: "Sair",
    credentials: "Suas credenciais",
    credentialsNote: "Para programas que usam a interface de gerenciamento em seu nome.",
    none: "Nenhuma ainda.",
    kinds: { service: "conta de serviço", user: "conta de usuário" },
    delete: "Excluir",
    deleteOf: (label) => `Excluir ${label}`,
    deleteNote: "Os programas que a usam não poderão mais obter tokens. Não é possível desfazer.",
    deleteYes: "Excluir para sempre",
    newCredential: "Nova credencial",
    label: "Rótulo",
    use: "Uso",
    service: "Conta de serviço (credenciais de cliente)",
    user: "Conta de usuário (código de autorização)",
    redirectUris: "Endereços de redirecionamento, um por linha (conta de usuário)",
    create: "Criar",
    secretOnce: "Salve este segredo agora: ele não será mostrado de novo.",
    clientId: "ID do cliente",
    clientSecret: "Segredo do cliente",
  },

  password: {
    heading: "Alterar sua senha",
    note: "Pelo menos 10 caracteres. Os outros navegadores são desconectados, e os seus tokens são revogados.",
    current: "Senha atual",
    chosen: "Nova senha",
    repeated: "Repita a nova senha",
    action: "Alterar senha",
    changed: "Sua senha foi alterada. Os outros navegadores foram desconectados, e os seus tokens foram revogados.",
  },

  error: {
    title: "Algo deu errado",
    again: "Abrir o formulário de novo",
    failed: "Ocorreu um erro no servidor.",
    refused: "Esta requisição não pode ser respondida. Avise o responsável pela aplicação de onde você veio:",
  },

  refusals,
};
